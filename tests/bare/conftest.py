# SPDX-License-Identifier: Apache-2.0
"""Bare machines can be made only by root on Debian. Otherwise these tests are not collected."""

from tests.support.bare_machine import why_impossible

collect_ignore_glob = ["test_*.py"] if why_impossible() else []
