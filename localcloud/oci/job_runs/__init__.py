# SPDX-License-Identifier: Apache-2.0
"""Makes assignments for the hosts from OCI's job runs. Only this package knows both OCI's API and the hosts."""
