# SPDX-License-Identifier: Apache-2.0
"""Looks for what others made beside a stack's resources, by the rows of components/aws/types/live_beside.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.aws.types.aws_resource_type import Read
from components.aws.types.live_beside import LIVE_BESIDE, LiveBeside
from components.aws.types.templates import fill_template
from components.platform.live import Reading
from components.platform.review import ReviewedResource, Snapshot
from components.s3 import Session

# The error codes of a local cloud without such resources, as words.
NOT_SERVED = "NotImplemented 501"
# `what`, service, call, values of its templates. None if there is nothing, or if the caller may not read it.
Ask = Callable[[str, str, Read, Mapping[str, Any]], Any]


def read_beside_in_aws(declared: Snapshot, session: Session, reading: Reading, ask: Ask) -> None:
    place = {"account": session.account, "region": session.region_name}
    for row in LIVE_BESIDE:
        named = {resource.inputs.get(row.declared_by) for resource in declared.of(row.token) if row.declared_by}
        for resource in declared.of(row.beside):
            its = {**place, **resource.inputs, **_needed_fields(row, resource), "id": resource.id}
            if resource.inputs.get(row.declared_by) in named or None in (its.get(key) for key in row.needs):
                continue
            kind = row.token.rpartition(":")[2]
            for found in ask(f"the {kind} beside {resource.name}", row.service, row.read, its) or ():
                fields = {**its, **(found if isinstance(found, Mapping) else {"found": found})}
                words = str(fill_template(row.words, fields) or f"{kind} beside {resource.name}")
                reading.add(row.token, f"{resource.id}/{words}", fill_template(row.inputs, fields), words)


def _needed_fields(row: LiveBeside, resource: ReviewedResource) -> dict[str, Any]:
    import jmespath

    return {name: jmespath.search(path, resource.inputs) for name, path in row.needs.items()}
