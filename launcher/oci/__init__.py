# SPDX-License-Identifier: Apache-2.0
"""What a node needs of OCI: its identity, signed requests, objects in a bucket."""
