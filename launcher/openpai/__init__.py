# SPDX-License-Identifier: Apache-2.0
"""Reads what OpenPAI tells its tasks."""
