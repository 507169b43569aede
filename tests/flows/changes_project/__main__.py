# SPDX-License-Identifier: Apache-2.0
"""One resource of each type that resources.json has; `{"id of": type}` is the id of the one of that type."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pulumi


class Anything(pulumi.CustomResource):
    pass


INPUTS = json.loads(Path("resources.json").read_text())


@cache
def made(kind: str) -> Anything:
    return Anything(kind, kind.rpartition(":")[2], resolved(INPUTS[kind]))


def resolved(value: Any) -> Any:
    if isinstance(value, dict):
        return made(value["id of"]).id if "id of" in value else {key: resolved(item) for key, item in value.items()}
    return [resolved(item) for item in value] if isinstance(value, list) else value


for each in INPUTS:
    made(each)
