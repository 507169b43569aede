# SPDX-License-Identifier: Apache-2.0
"""Makes stack files from what people bring: scripts, and resources that exist."""
