# SPDX-License-Identifier: Apache-2.0
"""Runs as real processes, whoever gives them."""
