# SPDX-License-Identifier: Apache-2.0
"""So many resources, none of which waits for another: flatter than any program of the same size."""

import pulumi

for index in range(pulumi.Config().require_int("resources")):
    pulumi.CustomResource("nothing:index:Thing", f"thing-{index}", {"text": f"thing {index}", "tags": {"team": "demo"}})
