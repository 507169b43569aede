# SPDX-License-Identifier: Apache-2.0
"""The least an `up` can cost under the same engine: a provider that does nothing, and a flat program of it."""
