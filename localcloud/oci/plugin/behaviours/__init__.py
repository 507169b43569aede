# SPDX-License-Identifier: Apache-2.0
"""Resource types with behaviour that a row cannot describe."""
