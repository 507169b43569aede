# SPDX-License-Identifier: Apache-2.0
"""Runs on clusters of AWS DL1: tickets of the queues, the machines that take them, and what both say."""
