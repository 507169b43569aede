# SPDX-License-Identifier: Apache-2.0
"""Benchmarks. Each figure is compared with a baseline from the same run: a floor, which does the least possible, or a
peer, which does the same in another way. A module with `rows()` is a benchmark: `python -m bench NAME`."""
