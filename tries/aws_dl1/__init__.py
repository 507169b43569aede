# SPDX-License-Identifier: Apache-2.0
"""Tries on AWS DL1: finds what is deployed in a cluster's queue, compares it with the file, and puts a ticket."""
