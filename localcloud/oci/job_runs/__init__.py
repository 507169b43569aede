# SPDX-License-Identifier: Apache-2.0
"""OCI's job runs as assignments: everything of the hosts that reads bodies of OCI's API."""
