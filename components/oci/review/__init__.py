# SPDX-License-Identifier: Apache-2.0
"""The OCI part of a review: rules, statements, losses and prices, computed from resources without a cloud."""
