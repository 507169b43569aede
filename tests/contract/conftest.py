# SPDX-License-Identifier: Apache-2.0
"""Tests that read the source of a real provider are collected only if a variable names a copy of it."""

import os

from tests.support.go_source import VARIABLE

collect_ignore = [] if os.environ.get(VARIABLE) else ["test_oci_provider_source.py"]
