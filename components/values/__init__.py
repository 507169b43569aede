# SPDX-License-Identifier: Apache-2.0
"""Neutral values: what is known of resource types, and what their resources mean, on any platform.

Everybody who judges resources reads these: reviews, drift, policies, the deployer's policy, and the local clouds."""
