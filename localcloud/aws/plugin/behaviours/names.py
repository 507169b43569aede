# SPDX-License-Identifier: Apache-2.0
"""Types whose names are their ids."""

from typing import Any

from components.platform.values import Properties
from localcloud.aws.plugin.table import AwsResource


class NamedResource(AwsResource):
    """The id is the name, also when the resource is imported by it."""

    def id_of(self, model: Any, inputs: Properties) -> str:
        return str(self.live(model).get("name") or inputs["name"])
