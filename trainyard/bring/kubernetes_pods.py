# SPDX-License-Identifier: Apache-2.0
"""The Pod template of a training job: its container, variables, machine and volumes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from catalog import frameworks
from catalog.tables import table
from components.platform.new_stacks import MachineNeeds
from schemas.checks.env_checks import OWNED, variables_set_by
from trainyard.bring.kubernetes_programs import expand_variables, variables_left_in
from trainyard.bring.model import gpu_named_in
from trainyard.bring.notes import LEFT_OUT, MEANINGLESS, SENSELESS, NoteTaker, is_secret_text
from trainyard.bring.yaml_text import Path, YamlDocument

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(m|[KMGTPk]i?)?")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
# Settings of the network's library, which are others on other machines.
_OF_NETWORK = "FI_"
_SET_ANYWAY = "every node gets it anyway"


@dataclass(frozen=True, slots=True)
class TrainingContainer:
    """The container that trains: where it stands, and the Pod around it. Nothing of it if there is none."""

    document: YamlDocument
    taker: NoteTaker
    pod: Path
    path: Path
    values: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        words = self.document.items(*self.path, "command") + self.document.items(*self.path, "args")
        return [str(word) for word in words]

    def image(self) -> str:
        return self.document.text(*self.path, "image")

    def line(self, *path: str | int) -> int:
        return self.document.line(*self.path, *path)


def training_container(
    document: YamlDocument, taker: NoteTaker, template: Path, names: tuple[str, ...]
) -> TrainingContainer:
    """`names`: how the container may be called that trains. Others beside it are left out."""
    path = (*template, "spec", "containers")
    containers = [str(item.get("name")) if isinstance(item, Mapping) else "" for item in document.items(*path)]
    chosen = next((containers.index(name) for name in names if name in containers), 0)
    for index, name in enumerate(containers):
        if index != chosen:
            message = f"the container `{name[:40]}` was left out: only the command runs on a node"
            taker.note(LEFT_OUT, document.line(*path, index), message, "do in the script what it does")
    own = (*path, chosen)
    return TrainingContainer(document, taker, (*template, "spec"), own, dict(_plain_values(document, (*own, "env"))))


def _plain_values(document: YamlDocument, path: Path) -> Iterator[tuple[str, str]]:
    known: dict[str, str] = {}
    for index, item in enumerate(document.items(*path)):
        if isinstance(item, Mapping) and "value" in item:
            name = str(item.get("name", ""))
            known[name] = expand_variables(document.text(*path, index, "value"), known)
            yield name, known[name]


def read_container_variables(
    document: YamlDocument, path: Path, taker: NoteTaker, framework: str, strategy: str
) -> dict[str, str]:
    """The variables of a list in a file, but for secrets, and for those that the launcher sets."""
    row = frameworks.framework_row(framework, strategy or None)
    reserved = dict.fromkeys((*variables_set_by(row), "NPROC_PER_NODE"), _SET_ANYWAY) | OWNED
    values, found = dict(_plain_values(document, path)), dict[str, str]()
    for index, item in enumerate(document.items(*path)):
        name, line = document.text(*path, index, "name"), document.line(*path, index)
        value = values.get(name, "")
        source = next(iter(document.table(*path, index, "valueFrom")), "")
        if not name or not isinstance(item, Mapping):
            taker.note(LEFT_OUT, line, "a variable without a name was left out", "give it a `name`")
        elif name in reserved or name.startswith(("PET_", "TRAINYARD_")):
            why = reserved.get(name, _SET_ANYWAY)
            taker.note(MEANINGLESS, line, f"`{name}` is not needed: {why}", "")
        elif name.startswith(_OF_NETWORK):
            taker.note(MEANINGLESS, line, f"`{name}` is not needed: the network follows from the shape", "")
        elif source == "secretKeyRef" or is_secret_text(name, value):
            remedy = "write it with `trainyard secret set`, under `env` of the job"
            what = "its value is a secret of the cluster" if source else "it is a secret in plain text"
            taker.note(LEFT_OUT, line, f"`{name}` was left out: {what}", remedy)
        elif source:
            message = f"`{name}` was left out: only the cluster knows its value ({source[:40]})"
            taker.note(LEFT_OUT, line, message, "write it under `env`, or read in the script what the launcher sets")
        elif variables_left_in(value) or "${" in value:
            message = f"`{name}` was left out: its value names another variable"
            taker.note(LEFT_OUT, line, message, "write its value under `env`")
        else:
            found[name] = value
    return found


def read_machine(container: TrainingContainer, resources: Path) -> MachineNeeds:
    """What a node needs, by limits and requests."""
    document, taker = container.document, container.taker
    amounts: dict[str, float] = {}
    for kind in ("requests", "limits"):
        for name in document.table(*resources, kind):
            amounts[str(name)] = _read_amount(document, taker, (*resources, kind, name))
    selectors = document.table(*container.pod, "nodeSelector")
    gpu = gpu_named_in(" ".join(map(str, [*selectors, *selectors.values()])))
    if selectors and not gpu:
        message = f"`nodeSelector` ({', '.join(map(str, selectors))[:60]}) was left out: the platform has other labels"
        taker.note(LEFT_OUT, document.line(*container.pod, "nodeSelector"), message, "choose the `shape`")
    gpus = 0
    rows: Mapping[str, Mapping[str, Any]] = table("bring/kubernetes")["resources"]
    for name, amount in amounts.items():
        row = rows.get(name) or next((row for key, row in rows.items() if name.startswith(key)), None)
        line = document.line(*resources, "limits", name)
        if row and row.get("gpus"):
            gpus, gpu = max(gpus, math.ceil(amount)), gpu or row.get("called", "")
        elif row:
            taker.note(MEANINGLESS, line, f"`{name}` is not needed: {row['meaningless']}", "")
        elif name not in ("cpu", "memory", "ephemeral-storage"):
            message = f"`{name[:60]}` was left out: it is no resource of a shape"
            taker.note(LEFT_OUT, line, message, "choose the `shape`")
    disk = math.ceil(amounts.get("ephemeral-storage", 0) / 1024**3)
    cpus = max(1, math.ceil(amounts.get("cpu", 1)))
    return MachineNeeds(cpus, math.ceil(amounts.get("memory", 0) / 1024**3), gpus, gpu, disk)


def _read_amount(document: YamlDocument, taker: NoteTaker, path: Path) -> float:
    text = document.text(*path)
    match = _AMOUNT.fullmatch(text)
    if not match:
        message = f"`{text[:40]}` is no amount of {path[-1]}"
        raise taker.refuse(SENSELESS, document.line(*path), message, "write a number, with a unit such as Gi or m")
    unit = match[2] or ""
    if unit == "m":
        return float(match[1]) / 1000
    power = _POWERS.get(unit[:1].lower(), 0)
    return float(match[1]) * float((1024 if unit.endswith("i") else 1000) ** power)


def note_volumes(container: TrainingContainer) -> None:
    """A note on each volume that nodes do not have."""
    document, taker = container.document, container.taker
    mounts = {
        str(item.get("name")): str(item.get("mountPath", ""))
        for item in document.items(*container.path, "volumeMounts")
        if isinstance(item, Mapping)
    }
    for index, item in enumerate(document.items(*container.pod, "volumes")):
        if not isinstance(item, Mapping):
            continue
        name = str(item.get("name", ""))
        kind = next((str(key) for key in item if key != "name"), "emptyDir")
        line, place = document.line(*container.pod, "volumes", index), mounts.get(name, "")
        shown = f"the volume `{name[:40]}` ({kind[:40]}){f' at {place[:60]}' if place else ''}"
        if kind == "emptyDir" or place == "/dev/shm":
            why = "a node has a disk of its own, and the shared memory of its machine"
            taker.note(MEANINGLESS, line, f"{shown} is not needed: {why}", "")
            continue
        remedy = "put its data into a bucket, and name it under `inputs`"
        if kind in ("configMap", "secret", "projected", "downwardAPI"):
            remedy = "put what it has into the folder of the code"
        taker.note(LEFT_OUT, line, f"{shown} was left out: nodes have no volumes of a cluster", remedy)


def note_suspended(document: YamlDocument, path: Path, taker: NoteTaker) -> None:
    message = "`suspend` was left out: runs start when `up` starts them"
    taker.note(LEFT_OUT, document.line(*path), message, "leave out the run until it may start")
