# SPDX-License-Identifier: Apache-2.0
"""Makes the resources that resources.json lists: type, name, properties, and whether it is protected.

`{"later": true}` is a value that another resource will have.
"""

import json
from pathlib import Path
from typing import Any

import pulumi


class Anything(pulumi.CustomResource):
    later: pulumi.Output[Any]

    def __init__(self, kind: str, name: str, properties: dict[str, Any], protect: bool = False) -> None:
        super().__init__(kind, name, {**properties, "later": None}, pulumi.ResourceOptions(protect=protect))


def resolved(value: Any) -> Any:
    if value == {"later": True}:
        return other.later
    if isinstance(value, dict):
        return {key: resolved(item) for key, item in value.items()}
    return [resolved(item) for item in value] if isinstance(value, list) else value


# A type that the pack knows, and of which no rule demands anything.
other = Anything("oci:ObjectStorage/storageObject:StorageObject", "other", {})
for kind, name, properties, *protect in json.loads(Path("resources.json").read_text()):
    Anything(kind, name, resolved(properties), *protect)
