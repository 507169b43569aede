# SPDX-License-Identifier: Apache-2.0
"""Meaning checks of OCI's stacks. Importing a file of checks declares them."""

from components.oci.checks import access, names, runs, transports  # noqa: F401
from components.oci.stack import RULES
from schemas.stack_file import StackChecks

CHECKS = StackChecks(RULES)
