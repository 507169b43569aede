# SPDX-License-Identifier: Apache-2.0
"""Bare machines are made where root and Debian allow. Elsewhere these tests are not collected."""

from tests.support.bare_machine import why_impossible

collect_ignore_glob = ["test_*.py"] if why_impossible() else []
