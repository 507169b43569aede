# SPDX-License-Identifier: Apache-2.0
"""Meaning checks of AWS's stacks. Importing a file of checks declares them."""

from components.aws.checks import cluster, machines, names, network  # noqa: F401
from components.aws.stack import RULES
from schemas.stack_file import StackChecks

CHECKS = StackChecks(RULES)
