# SPDX-License-Identifier: Apache-2.0
"""Just enough of OCI for a node: its own identity, signed requests, objects in a bucket."""
