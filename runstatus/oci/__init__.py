# SPDX-License-Identifier: Apache-2.0
"""Runs of OCI Data Science: looker.py puts job runs together by their tags, logs.py merges what they print."""
