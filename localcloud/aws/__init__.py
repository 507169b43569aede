# SPDX-License-Identifier: Apache-2.0
"""AWS inside the local cloud: moto behind signatures, access and a state that survives (docs/decisions/0022)."""
