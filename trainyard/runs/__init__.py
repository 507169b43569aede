# SPDX-License-Identifier: Apache-2.0
"""Reads what runs are doing, and starts tries. Each platform has its own client (components/<platform>/client)."""
