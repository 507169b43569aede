# SPDX-License-Identifier: Apache-2.0
"""Moves files between this machine and a stack's bucket: in parallel parts, verified, and resumed after a cut.

`put.py` sends and `get.py` fetches. Each platform's folder speaks with its own store (platform.py says what it needs).
"""
