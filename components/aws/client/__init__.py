# SPDX-License-Identifier: Apache-2.0
"""Calls of AWS: runs and their logs, files, images. The caller decides on credentials and region."""
