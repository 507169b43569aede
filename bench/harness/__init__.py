# SPDX-License-Identifier: Apache-2.0
"""What every bench shares: rows, pairs measured in turns, and the table."""
