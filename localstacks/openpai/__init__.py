# SPDX-License-Identifier: Apache-2.0
"""Stacks of OpenPAI on the local cloud."""
