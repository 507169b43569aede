# SPDX-License-Identifier: Apache-2.0
"""Data of a local stack: what a stack file keeps stays, unless a person says otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from localcloud.control import Cloud
from localstacks.place import Place
from localstacks.sessions import DEPLOYER, session_of
from localstacks.stand_ins.resources import empty
from localstacks.states import BUCKET, Row, name_of
from provider.base.asking import Tell
from provider.base.errors import ProviderError
from provider.oci.calls import is_gone


def let_go(place: Place) -> None:
    """Protection and retention end, in the state of this local stack; its file stays as it is."""
    exported = _exported(place)
    for row in _resources(exported):
        row.pop("protect", None)
        row.pop("retainOnDelete", None)
    with TemporaryDirectory() as folder:
        file = Path(folder, "state.json")
        file.write_text(json.dumps(exported))
        place.state("import", "--stack", place.stack, "--file", str(file))


def empty_buckets(cloud: Cloud, going: Sequence[Row], tell: Tell) -> int:
    """Removes the objects of the buckets that are `going`; how many there were."""
    session, removed = session_of(cloud, DEPLOYER), 0
    for row in going:
        if row["type"] != BUCKET:
            continue
        try:
            removed += empty(session, tell, cloud.namespace, name_of(row))
        except ProviderError as error:
            # Gone behind Pulumi's back: then there is nothing in it.
            if error.__cause__ is None or not is_gone(error.__cause__):
                raise
    return removed


def _exported(place: Place) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(place.state("export", "--stack", place.stack))
    return told


def _resources(exported: dict[str, Any]) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("resources") or ())
