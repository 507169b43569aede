# SPDX-License-Identifier: Apache-2.0
"""The Pulumi program: load, check, plan, deploy, export."""

from components.program import run

run()
