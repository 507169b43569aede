# SPDX-License-Identifier: Apache-2.0
"""One module per service: its kinds and operations as rows, and handlers for rows with behaviour of their own."""
