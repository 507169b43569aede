# SPDX-License-Identifier: Apache-2.0
"""What OpenPAI tells its tasks."""
