# SPDX-License-Identifier: Apache-2.0
"""OCI inside the local cloud: its HTTP API, access decisions by policies, the state of a tenancy, and its registry."""
