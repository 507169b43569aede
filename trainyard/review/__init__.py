# SPDX-License-Identifier: Apache-2.0
"""What a change of a stack means, before it lands: recorded without a cloud, compared, and said in words."""
