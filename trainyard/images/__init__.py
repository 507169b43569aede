# SPDX-License-Identifier: Apache-2.0
"""The images that a stack's jobs name: which they are, what goes into them, the tools that build and push."""
