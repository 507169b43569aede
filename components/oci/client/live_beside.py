# SPDX-License-Identifier: Apache-2.0
"""Looks for what others made beside a stack's resources, by the rows of components/oci/types/live_beside.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from components.oci.client.live_values import as_program_inputs
from components.oci.types.live_beside import LIVE_BESIDE, LiveBeside
from components.platform.live import Reading
from components.platform.review import Snapshot


def read_beside_in_oci(declared: Snapshot, reading: Reading, lists: Callable[..., list[Any] | None]) -> None:
    ours = {resource.id for resource in declared.resources}

    def look(row: LiveBeside, its: Mapping[str, Any]) -> None:
        named = {name: str(its.get(key)) for name, key in row.named.items()}
        for found in lists(row.service, row.operation, *(str(its.get(key)) for key in row.within), **named) or ():
            # Of lifecycle rules only the name says which one it is.
            identity = str(getattr(found, "id", None) or found.name)
            if identity in ours or getattr(found, "vcn_id", its["id"]) != its["id"]:
                continue
            inputs = {
                **as_program_inputs(found),
                **{key: getattr(found, attribute) for key, attribute in row.renamed.items()},
                **{key: its[key_of_its] for key, key_of_its in row.given.items()},
            }
            reading.add(row.token, identity, inputs, row.words.format(found=found, its=its))
            for below in row.below:
                look(below, {**inputs, "id": identity})

    for row in LIVE_BESIDE:
        for resource in declared.of(row.beside):
            look(row, {**resource.inputs, "id": resource.id})
