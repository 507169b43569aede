# SPDX-License-Identifier: Apache-2.0
"""What a review asks of OCI: rules, statements, losses and prices, evaluated from resources and never from a cloud."""
