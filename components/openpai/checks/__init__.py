# SPDX-License-Identifier: Apache-2.0
"""The checks of OpenPAI. Importing a file of checks declares them."""

from components.openpai.checks import cluster, jobs  # noqa: F401
from components.openpai.stack import RULES
from schemas.stack_file import StackChecks

CHECKS = StackChecks(RULES)
