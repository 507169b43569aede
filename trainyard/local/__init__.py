# SPDX-License-Identifier: Apache-2.0
"""Stacks on the local cloud: Pulumi with a copy of their stack file, and stand-ins for what exists elsewhere."""
