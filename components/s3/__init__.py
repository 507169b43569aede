# SPDX-License-Identifier: Apache-2.0
"""S3 for the platforms that use it: sessions, calls, and a bucket as a store of files."""
