# SPDX-License-Identifier: Apache-2.0
"""Data of a local stack: what a stack file keeps stays, unless a person says otherwise."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cli.local.place import Place
from cli.local.stand_ins.resources import empty
from cli.sessions import DEPLOYER, session_of
from localcloud.control import Cloud
from provider.base.errors import ProviderError
from provider.oci.calls import is_gone

BUCKET = "oci:ObjectStorage/bucket:Bucket"
WORDS = {BUCKET: "bucket", "oci:Artifacts/containerRepository:ContainerRepository": "repository"}


@dataclass(frozen=True)
class Kept:
    """A resource that `pulumi destroy` refuses to remove."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{WORDS.get(self.type, self.type)} {self.name}"


def kept(place: Place) -> list[Kept]:
    """What the stack protects, as its state has it now."""
    return [
        Kept(row["type"], _name(row)) for row in _resources(_exported(place)) if row.get("protect") and row.get("id")
    ]


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


def empty_buckets(place: Place, cloud: Cloud) -> int:
    """Removes the objects of the buckets that are to go; how many there were."""
    session = session_of(cloud, DEPLOYER)
    going = [row for row in _resources(_exported(place)) if row["type"] == BUCKET and not row.get("protect")]
    removed = 0
    for row in going:
        try:
            removed += empty(session, cloud.namespace, _name(row))
        except ProviderError as error:
            # Gone behind Pulumi's back: then there is nothing in it.
            if error.__cause__ is None or not is_gone(error.__cause__):
                raise
    return removed


def _name(row: dict[str, Any]) -> str:
    told = row.get("outputs") or row.get("inputs") or {}
    return str(told.get("name") or told.get("displayName") or row["urn"].rpartition("::")[2])


def _exported(place: Place) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(place.state("export", "--stack", place.stack))
    return told


def _resources(exported: dict[str, Any]) -> list[dict[str, Any]]:
    return list((exported.get("deployment") or {}).get("resources") or ())
