# SPDX-License-Identifier: Apache-2.0
"""Classes for resource types with behaviour that a row cannot describe."""
