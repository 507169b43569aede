# SPDX-License-Identifier: Apache-2.0
"""The interfaces that a platform implements, and the values that pass through them."""
