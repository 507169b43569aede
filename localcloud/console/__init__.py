# SPDX-License-Identifier: Apache-2.0
"""The console: a read-only web page that shows the cloud. Each platform has its part in its own folder."""
