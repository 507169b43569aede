# SPDX-License-Identifier: Apache-2.0
"""AWS inside the local cloud: moto with signatures, access control and a saved state (docs/decisions/0022)."""
