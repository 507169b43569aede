# SPDX-License-Identifier: Apache-2.0
"""Runs tasks of the local OpenPAI, each on a host of its own, with OpenPAI's runtime around its command."""
