# SPDX-License-Identifier: Apache-2.0
"""The embedded cloud: OCI's own HTTP API on loopback, its state on disk, job runs as real processes."""
