# SPDX-License-Identifier: Apache-2.0
"""Types with behaviour of their own, beyond what a row says; a module for each service."""
