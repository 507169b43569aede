# SPDX-License-Identifier: Apache-2.0
"""A job of OpenPAI's protocol, version 2. On OpenPAI it stays what it is (`start: as-is`). On other platforms its
commands run in one script, with the variables that OpenPAI gives them (`speaks: [openpai]`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from components.platform.new_stacks import MachineNeeds
from trainyard.bring.keys import judge_document
from trainyard.bring.model import LONGEST_MINUTES, BroughtJob, gpu_named_in, name_for_stack
from trainyard.bring.notes import CHOICE, LEFT_OUT, NO_EFFECT, SENSELESS, NoteTaker
from trainyard.bring.openpai_commands import OpenPaiCommands
from trainyard.bring.openpai_plugins import carried_plugins, carried_prerequisites
from trainyard.bring.yaml_text import YamlDocument

_ROW = "taskRoles.*"
# The labels of ports that every task has, and the first number of those that a stack gives them elsewhere.
_OWN_LABELS, _FIRST_PORT = ("ssh", "http"), 29400
# Tasks of a role, or ports of a task, as many as a stack may have nodes; and the largest of other numbers.
_MOST_TASKS, _MOST = 10_000, 100_000_000


@dataclass(frozen=True, slots=True)
class TaskRole:
    """A task role, as its job says it."""

    name: str
    instances: int
    cpus: int
    memory_mb: int
    gpus: int
    shared_mb: int
    infiniband: bool
    ports: Mapping[str, int]
    min_failed: int
    min_succeeded: int | None


def openpai_platform() -> str:
    """The platform on which its jobs ran."""
    return str(table("bring/openpai")["system"]["platform"])


def is_openpai_job(document: YamlDocument) -> bool:
    return "protocolVersion" in document.table() and isinstance(document.at("taskRoles"), Mapping)


def read_openpai_job(document: YamlDocument, platform: str) -> tuple[BroughtJob, NoteTaker]:
    """The job on OpenPAI itself, or on another platform. BringError if it is no job of this protocol."""
    stays = platform == openpai_platform()
    taker = NoteTaker(document.name)
    version = document.text("protocolVersion")
    if version not in ("2", "2.0"):
        message = f"it has version {version[:20]} of the protocol, and only version 2 is read"
        raise taker.refuse(SENSELESS, document.line("protocolVersion"), message, "write the job in version 2")
    rows: Mapping[str, Mapping[str, Any]] = table("bring/openpai")["keys"]
    judge_document(document, rows if stays else {key: _row_elsewhere(row) for key, row in rows.items()}, taker)
    reader = _OpenPaiReader(document, taker)
    return (reader.read_for_openpai() if stays else reader.read_for_others()), taker


def _row_elsewhere(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if "elsewhere" not in row:
        return row
    return {"left_out" if "do" in row else "meaningless": row["elsewhere"], "do": row.get("do", "")}


class _OpenPaiReader:
    def __init__(self, document: YamlDocument, taker: NoteTaker) -> None:
        self._document, self._taker = document, taker
        self._roles = [self._role(str(name)) for name in document.table("taskRoles")]
        if not self._roles:
            raise taker.refuse(SENSELESS, document.line("taskRoles"), "it has no task role", "write one")
        self._commands = OpenPaiCommands(document, taker)
        self._gang = document.at("extras", "gangAllocation") is not False

    def read_for_openpai(self) -> BroughtJob:
        document, config = self._document, dict[str, Any]()
        skus, shapes = self._skus()
        config["trainyard:skus"] = skus
        if cluster := document.text("defaults", "virtualCluster"):
            config["trainyard:cluster"] = {"virtualCluster": cluster}
        if storage := self._storage():
            config["trainyard:storage"] = storage
        scripts = {role.name: self._commands.script(role.name) for role in self._roles}
        first = self._roles[0].name
        keys: dict[str, Any] = {
            "framework": "pytorch",
            "start": "as-is",
            "shape": shapes[first],
            "roles": {role.name: self._role_row(role, shapes, scripts) for role in self._roles},
            "command": scripts[first],
            "maximumRuntimeMinutes": LONGEST_MINUTES,
        }
        if priority := document.text("extras", "hivedScheduler", "jobPriorityClass"):
            keys["jobPriorityClass"] = priority
        if parameters := self._commands.parameters:
            keys["parameters"] = dict(parameters)
        if prerequisites := carried_prerequisites(document, self._taker, self._commands.for_runtime):
            keys["prerequisites"] = prerequisites
        if plugins := carried_plugins(document, self._taker, self._commands.for_runtime):
            keys["plugins"] = plugins
        return self._job(keys, MachineNeeds(), config)

    def read_for_others(self) -> BroughtJob:
        nodes = sum(role.instances for role in self._roles)
        retry = {"retry": {"count": count}} if (count := self._number("jobRetryCount")) else {}
        roles: dict[str, Any] = {"main": {"replicas": 1, **retry} if retry else 1}
        if nodes > 1:
            roles["worker"] = {"replicas": nodes - 1, **retry} if retry else nodes - 1
        keys: dict[str, Any] = {
            "framework": "pytorch",
            "roles": roles,
            "speaks": [table("bring/openpai")["system"]["name"]],
            "command": self._commands.command_of_all([role.name for role in self._roles]),
            "env": dict(self._openpai_variables()),
            "maximumRuntimeMinutes": LONGEST_MINUTES,
        }
        if nodes > 1:
            keys["ports"] = {"data": "all"}
            message = "its tasks may listen on any port, so nodes may connect on all ports (`data: all`)"
            self._taker.note(CHOICE, self._document.line("taskRoles"), message, "name a range")
        for role in self._roles:
            self._note_completion(role, nodes)
        network = {}
        if line := self._commands.fetches:
            message = "it fetches something from the internet, so the network gets a way out (`nat`)"
            self._taker.note(CHOICE, line, message, "remove `nat` if the image has what it fetches")
            network = {"trainyard:network": {"nat": True}}
        return self._job(keys, self._needs(), network)

    def _job(self, keys: dict[str, Any], needs: MachineNeeds, config: Mapping[str, Any]) -> BroughtJob:
        image, line, index = self._image()
        if "start" in keys:
            self._note_image_auth(index)
        return BroughtJob(
            name_for_stack(self._document.text("name")),
            {**keys, "runs": {"base": {}}},
            needs,
            image=image,
            image_line=line,
            machine_line=self._document.line("taskRoles", self._roles[0].name, "resourcePerInstance"),
            config=config,
            platform=openpai_platform(),
        )

    def _role(self, name: str) -> TaskRole:
        path = ("taskRoles", name)
        resources, options = (*path, "resourcePerInstance"), (*path, "extraContainerOptions")
        labels = self._document.table(*resources, "ports")
        ports = {str(label): self._number(*resources, "ports", label, most=_MOST_TASKS) for label in labels}
        minimum = self._document.at(*path, "completion", "minSucceededInstances")
        return TaskRole(
            name, max(1, self._number(*path, "instances", default=1, most=_MOST_TASKS)),
            self._number(*resources, "cpu", default=1), self._number(*resources, "memoryMB", default=1024),
            self._number(*resources, "gpu"), self._number(*options, "shmMB"),
            self._document.at(*options, "infiniband") is True, ports,
            self._number(*path, "completion", "minFailedInstances", default=1),
            minimum if isinstance(minimum, int) and minimum > 0 else None,
        )  # fmt: skip

    def _number(self, *path: str | int, default: int = 0, most: int = _MOST) -> int:
        value = self._document.at(*path)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not -2 <= value <= most:
            message = f"`{'.'.join(map(str, path))}` is not a whole number up to {most:,}"
            raise self._taker.refuse(SENSELESS, self._document.line(*path), message, "write a number")
        return value

    def _skus(self) -> tuple[dict[str, Any], dict[str, str]]:
        """`trainyard:skus`, and the SKU of each role."""
        skus, shapes = dict[str, Any](), dict[str, str]()
        for role in self._roles:
            memory = max(0.25, round(role.memory_mb / 1024, 3))
            sku: dict[str, Any] = {"gpus": role.gpus} if role.gpus else {}
            sku |= {"cpus": max(1, role.cpus), "memoryGb": int(memory) if memory == int(memory) else memory}
            sku |= {"shmMb": role.shared_mb} if role.shared_mb else {}
            sku |= {"infiniband": True} if role.infiniband else {}
            sku |= {key: text for key, text in self._hived(role.name).items() if text}
            plain = f"gpu{role.gpus}" if role.gpus else f"cpu{max(1, role.cpus)}"
            names = (f"{plain}-{number}" if number else plain for number in range(len(self._roles)))
            shapes[role.name] = next(name for name in names if skus.setdefault(name, sku) == sku)
        return skus, shapes

    def _hived(self, role: str) -> Mapping[str, str]:
        path = ("extras", "hivedScheduler", "taskRoles", role)
        cell = self._document.text(*path, "pinnedCellId")
        kind = self._document.text(*path, "skuType") or self._document.text(*path, "gpuType")
        return {"pinnedCellId": cell} if cell else {"sku": kind}

    def _role_row(self, role: TaskRole, shapes: Mapping[str, str], scripts: Mapping[str, str]) -> Any:
        first = self._roles[0].name
        row: dict[str, Any] = {"replicas": role.instances}
        row |= {"shape": shapes[role.name]} if shapes[role.name] != shapes[first] else {}
        row |= {"ports": dict(role.ports)} if role.ports else {}
        row |= {"command": scripts[role.name]} if scripts[role.name] != scripts[first] else {}
        if count := self._number("jobRetryCount"):
            row["retry"] = {"count": count}
        suffices = role.min_succeeded if role.min_succeeded != role.instances or len(self._roles) > 1 else None
        completion = {"minFailed": role.min_failed} if role.min_failed not in (0, 1) else {}
        completion |= {"minSucceeded": suffices} if suffices else {}
        row |= {"completion": completion} if completion else {}
        if again := self._number("taskRoles", role.name, "taskRetryCount"):
            line = self._document.line("taskRoles", role.name, "taskRetryCount")
            if self._gang:
                message = f"`taskRetryCount` ({again}) has no effect, because all tasks start again together"
                self._taker.note(NO_EFFECT, line, message, "write `jobRetryCount` there, or `retry` here")
            else:
                message = f"`taskRetryCount` ({again}) was left out: the tasks of a command as it is start together"
                self._taker.note(LEFT_OUT, line, message, "write `retry` for the role: then all tasks start again")
        return row if len(row) > 1 else role.instances

    def _storage(self) -> Mapping[str, Any]:
        storages = [item for item in self._document.items("extras", "storages") if isinstance(item, Mapping)]
        for index, item in enumerate(storages[1:], 1):
            message = f"the storage `{str(item.get('name'))[:40]}` was left out: a stack has one"
            line = self._document.line("extras", "storages", index)
            self._taker.note(LEFT_OUT, line, message, "put what the script reads there into the first one")
        if not storages or not storages[0].get("name"):
            return {}
        mount = storages[0].get("mountPath")
        return {"name": str(storages[0]["name"]), **({"mount": str(mount).rstrip("/")} if mount else {})}

    def _image(self) -> tuple[str, int, int]:
        """The image of the largest role, which all roles get, its line, and the number of its prerequisite."""
        rows = {
            str(item.get("name")): (
                str(item.get("uri") or ""),
                self._document.line("prerequisites", index, "uri"),
                index,
            )
            for index, item in enumerate(self._document.items("prerequisites"))
            if isinstance(item, Mapping) and item.get("type") == "dockerimage"
        }
        # An image for GPUs serves a role without them, too.
        roles = sorted(self._roles, key=lambda role: -role.gpus)
        named = [(role.name, self._document.text("taskRoles", role.name, "dockerImage")) for role in roles]
        for role, name in named:
            if name not in rows:
                line = self._document.line("taskRoles", role, "dockerImage")
                raise self._taker.refuse(
                    SENSELESS, line, f"no prerequisite is the image `{name[:60]}` of {role}", "add it"
                )
        first = rows[named[0][1]]
        for role, name in named:
            if rows[name][0] != first[0]:
                message = f"the image of {role}, {rows[name][0][:80]}, was left out: all roles have {first[0][:80]}"
                self._taker.note(LEFT_OUT, rows[name][1], message, "make one image for all roles")
        return first

    def _note_image_auth(self, index: int) -> None:
        path = ("prerequisites", index, "auth")
        if self._document.at(*path):
            message = "who pulls the image was left out, because its password is a secret"
            remedy = "add `imageAuth` with `user`, and set its `password` with `trainyard secret set`"
            self._taker.note(LEFT_OUT, self._document.line(*path), message, remedy)

    def _openpai_variables(self) -> Iterator[tuple[str, str]]:
        """What OpenPAI tells tasks about their job, by its own names. The launcher computes the others from these."""
        yield "PAI_TASK_ROLE_LIST", ",".join(role.name for role in self._roles)
        number = _FIRST_PORT
        for role in self._roles:
            yield f"PAI_TASK_ROLE_TASK_COUNT_{role.name}", str(role.instances)
            yield f"PAI_RESOURCE_{role.name}", f"{role.gpus},{role.cpus},{role.memory_mb},{role.shared_mb}"
            yield f"PAI_MIN_FAILED_TASK_COUNT_{role.name}", str(role.min_failed or 1)
            minimum = self._document.at("taskRoles", role.name, "completion", "minSucceededInstances")
            yield f"PAI_MIN_SUCCEEDED_TASK_COUNT_{role.name}", str(minimum or role.instances)
            # The controller keeps lowercase letters and digits of a name.
            short = re.sub(r"[^a-z0-9]", "", role.name.lower())
            for label, count in {**role.ports, **{own: max(1, role.ports.get(own, 1)) for own in _OWN_LABELS}}.items():
                yield f"PAI_PORT_LIST_{short}_0_{label}", ",".join(str(number + one) for one in range(count))
                number += count
        if cluster := self._document.text("defaults", "virtualCluster"):
            yield "PAI_VIRTUAL_CLUSTER", cluster

    def _needs(self) -> MachineNeeds:
        """One machine for all roles: the largest that one of them needs."""
        sizes = {(role.cpus, role.memory_mb, role.gpus) for role in self._roles}
        if len(sizes) > 1:
            message = "its roles need different machines, and all nodes have the same"
            self._taker.note(CHOICE, self._document.line("taskRoles"), message, "choose the `shape`")
        kinds = " ".join(self._hived(role.name).get("sku", "") for role in self._roles)
        cpus, memory, gpus = (max(size[part] for size in sizes) for part in range(3))
        return MachineNeeds(cpus, memory // 1024, gpus, gpu_named_in(kinds))

    def _note_completion(self, role: TaskRole, nodes: int) -> None:
        """Says what differs where nodes decide together whether a run has ended."""
        said = {"minFailedInstances": role.min_failed not in (0, 1)}
        said["minSucceededInstances"] = role.min_succeeded is not None and role.min_succeeded != nodes
        for key, differs in said.items():
            name, path = f"{_ROW}.completion.{key}", ("taskRoles", role.name, "completion", key)
            if differs and (row := table("bring/openpai")["completion"].get(key)):
                value = self._document.text(*path)
                self._taker.judge_key(
                    {name: row}, name, f"`{key}` of {role.name} ({value})", self._document.line(*path)
                )
