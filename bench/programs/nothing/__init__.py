# SPDX-License-Identifier: Apache-2.0
"""The floor of `up`: a provider that does nothing, and a flat program with its resources."""
