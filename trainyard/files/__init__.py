# SPDX-License-Identifier: Apache-2.0
"""Moves files between this machine and a stack's bucket: in parallel parts, verified, and resumed if interrupted.

`put.py` uploads and `get.py` downloads. Each platform has its own store; components/platform/files.py has its type.
"""
