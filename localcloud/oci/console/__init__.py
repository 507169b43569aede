# SPDX-License-Identifier: Apache-2.0
"""OCI in the console: job runs, networks, policies, buckets, jobs."""
