# SPDX-License-Identifier: Apache-2.0
"""The console: one read-only page that shows the tenancy."""
