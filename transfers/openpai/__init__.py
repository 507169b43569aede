# SPDX-License-Identifier: Apache-2.0
"""Where runs on OpenPAI keep files: a bucket that speaks S3, or a storage of the cluster, which only its tasks see."""
