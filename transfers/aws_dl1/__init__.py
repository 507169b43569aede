# SPDX-License-Identifier: Apache-2.0
"""Amazon S3, as `trainyard data` and `trainyard runs outputs` use it."""
