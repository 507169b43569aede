# SPDX-License-Identifier: Apache-2.0
"""Shared by all benchmarks: rows of results, pairs that are measured alternately, servers under measurement."""
