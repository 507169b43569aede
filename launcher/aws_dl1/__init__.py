# SPDX-License-Identifier: Apache-2.0
"""A node on AWS: its store, its identity, and the program on the instance (docs/decisions/0021)."""
