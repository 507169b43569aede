# SPDX-License-Identifier: Apache-2.0
"""Gets the Pulumi engine onto a machine, and keeps local stacks apart from the user's own."""
