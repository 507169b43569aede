# SPDX-License-Identifier: Apache-2.0
"""Stacks of AWS DL1 on the local cloud."""
