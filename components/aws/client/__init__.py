# SPDX-License-Identifier: Apache-2.0
"""Calls of AWS: runs and what they print, files, images. Who acts, and where, is told."""
