# SPDX-License-Identifier: Apache-2.0
"""Tries on OCI Data Science: finds the deployed job and its runs, compares them with the file, and starts a try."""
