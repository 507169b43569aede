# SPDX-License-Identifier: Apache-2.0
"""Brings a stack up on a cloud of its own, lets it train, and reads what was left; rehearsal/ judges it."""
