# SPDX-License-Identifier: Apache-2.0
"""Job runs as real processes."""
