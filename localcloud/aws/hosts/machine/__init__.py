# SPDX-License-Identifier: Apache-2.0
"""The programs inside a machine: its first program, and stand-ins for others. They use the standard library only."""
