# SPDX-License-Identifier: Apache-2.0
"""Jobs of OpenPAI: the variables of their tasks."""
