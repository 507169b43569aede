# SPDX-License-Identifier: Apache-2.0
"""IAM policy documents of AWS: read, compared with a call, and decided. Pure, on its own."""
