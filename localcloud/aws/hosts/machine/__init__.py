# SPDX-License-Identifier: Apache-2.0
"""The programs inside a machine: what boots it, and stand-ins for what no laptop has. Standard library only."""
