# SPDX-License-Identifier: Apache-2.0
"""A program with a given number of resources and no dependencies."""

import pulumi

for index in range(pulumi.Config().require_int("resources")):
    pulumi.CustomResource("nothing:index:Thing", f"thing-{index}", {"text": f"thing {index}", "tags": {"team": "demo"}})
