# SPDX-License-Identifier: Apache-2.0
"""The console: one read-only page that shows the cloud, with a folder for each platform."""
