# SPDX-License-Identifier: Apache-2.0
"""Runs on OpenPAI: a user's jobs on a cluster, their tasks, and what both say."""
