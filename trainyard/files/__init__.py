# SPDX-License-Identifier: Apache-2.0
"""Moves files between this machine and a stack's bucket: in parallel parts, verified, and resumed after a cut.

`put.py` sends and `get.py` fetches. Each platform has a store of its own; components/platform/files.py has its type.
"""
