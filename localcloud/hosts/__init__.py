# SPDX-License-Identifier: Apache-2.0
"""The hosts: carry out runs of any platform as real processes."""
