# SPDX-License-Identifier: Apache-2.0
"""The AWS part of a review: security groups, policies, losses and prices, computed from resources without a cloud."""
