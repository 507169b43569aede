# SPDX-License-Identifier: Apache-2.0
"""Tells which prerequisite of a stack is missing, and by what command to get it."""
