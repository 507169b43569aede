# SPDX-License-Identifier: Apache-2.0
"""Figures held against a floor or a peer of the same run. A module with `rows()` is a bench: `python -m bench NAME`."""
