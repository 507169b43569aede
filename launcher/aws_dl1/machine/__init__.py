# SPDX-License-Identifier: Apache-2.0
"""The program on a machine of a cluster: it serves the queue of its job (docs/decisions/0021)."""
