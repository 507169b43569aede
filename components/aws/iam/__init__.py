# SPDX-License-Identifier: Apache-2.0
"""IAM policy documents: parses, compares and evaluates them. Pure: it imports nothing else of trainyard."""
