# SPDX-License-Identifier: Apache-2.0
"""What of a rehearsal is OCI's: people and groups, job runs, policies and security lists."""
