# SPDX-License-Identifier: Apache-2.0
"""What a platform fills in, and the values that platforms and those who ask them speak in."""
