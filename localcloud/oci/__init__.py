# SPDX-License-Identifier: Apache-2.0
"""OCI inside the local cloud: its HTTP API, policies that judge each call, the state of a tenancy, and its registry."""
