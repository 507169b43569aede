# SPDX-License-Identifier: Apache-2.0
"""One module a service: its kinds and operations as rows, and handlers where a row has behaviour."""
