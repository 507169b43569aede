# SPDX-License-Identifier: Apache-2.0
"""Compares a stack's cloud with what the stack's last `up` requested."""
