# SPDX-License-Identifier: Apache-2.0
"""What runs are doing: command.py asks, seen.py looks, logs.py reads, text.py tells."""
