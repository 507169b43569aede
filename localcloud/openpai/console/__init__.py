# SPDX-License-Identifier: Apache-2.0
"""OpenPAI in the console: jobs as runs, virtual clusters, storages."""
