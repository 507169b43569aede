# SPDX-License-Identifier: Apache-2.0
"""Stacks on the local cloud: plain Pulumi with a copy of their file, and stand-ins for what lies elsewhere."""
