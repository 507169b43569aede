# SPDX-License-Identifier: Apache-2.0
"""Jobs of the cluster: their names, what we write into them, and what we read back. Pure."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from components.openpai.plain_command import quote_word
from components.openpai.protocol import controller_name, parse_job_text
from components.platform.runs import NodeRun, RunSpec
from components.platform.values import Properties

PLATFORM = "openpai"
VERSION = 1
# The place in a job for values that the protocol has no field for.
EXTRAS = "trainyard"
_OWN = frozenset({"version", "fingerprint", "displayName", "tags", "attempt", "nodes", "maximumRuntimeMinutes"})
# Tags of a job: one marks it as history; the others have names and tags that changed after its submission.
RELEASED = "trainyard.released"
_CHANGED = "trainyard."
_LONGEST_NAME = 255
_LONGEST_TAG = 512
_ID = re.compile(rf"{PLATFORM}/(?P<user>[^/~]+)~(?P<job>[A-Za-z0-9_-]+)/(?P<role>[^/]+)/(?P<index>[0-9]+)")
_OURS = re.compile(r".*-[0-9a-f]{8}(-[0-9]+)?")
# The number of letters of a job's name that are in the name of a start.
_LETTERS = 60
# The line that tells our launcher what the run expects. It is added to the job when it is submitted.
_EXPECTS = "export TRAINYARD_EXPECTS="
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class RunId(NamedTuple):
    """`openpai/<user>~<job>/<role>/<index>`."""

    user: str
    job: str
    role: str
    # The task's index in the role.
    task: int

    def __str__(self) -> str:
        return f"{PLATFORM}/{self.user}~{self.job}/{self.role}/{self.task}"

    @property
    def task_key(self) -> tuple[str, int]:
        """The task's role, in the controller's spelling, which the cluster's responses use; and its index."""
        return controller_name(self.role), self.task

    @classmethod
    def parse(cls, text: str) -> "RunId | None":
        parts = _ID.fullmatch(text)
        return cls(parts["user"], parts["job"], parts["role"], int(parts["index"])) if parts else None


def job_name(display_name: str, fingerprint: str, start: int) -> str:
    """The name of a run's job. OpenPAI never accepts a name twice, so a further start has a number."""
    # The fingerprint of a try has another prefix.
    mark = fingerprint.rpartition("/")[2][:8]
    tail = f"-{mark}" + (f"-{start}" if start > 1 else "")
    return _NOT_IN_NAMES.sub("-", display_name)[: _LONGEST_NAME - len(tail)] + tail


def job_of(spec: RunSpec, name: str) -> dict[str, Any]:
    """The job of a run, in the form in which it is submitted."""
    protocol = spec.own["protocol"]
    extras = protocol.get("extras") or {}
    own = {
        **(extras.get(EXTRAS) or {}),
        "version": VERSION,
        "fingerprint": spec.fingerprint,
        "displayName": spec.display_name,
        "tags": dict(spec.tags),
        "attempt": spec.attempt,
        "nodes": [{"name": node.name, "role": node.role, "rank": node.rank} for node in spec.nodes],
        # The command enforces the limit. Here it explains later why the job ended.
        **({"maximumRuntimeMinutes": spec.maximum_runtime_minutes} if spec.maximum_runtime_minutes else {}),
    }
    told = _with_expects(protocol, spec.expects) if spec.expects else protocol
    return {**told, "name": name, "extras": {**extras, EXTRAS: own}}


def _with_expects(protocol: Mapping[str, Any], expects: str) -> dict[str, Any]:
    """The job in which every task exports what the run expects, before its last line starts the launcher."""
    line = f"{_EXPECTS}{quote_word(expects)}"
    return _with_commands(protocol, lambda commands: [*commands[:-1], line, *commands[-1:]])


def _with_commands(protocol: Mapping[str, Any], change: Callable[[list[Any]], list[Any]]) -> dict[str, Any]:
    """The job with changed commands of its task roles. Values of another form stay: anybody may submit any job."""
    roles = protocol.get("taskRoles")
    if not isinstance(roles, Mapping):
        return dict(protocol)
    changed = {
        name: {**role, "commands": change(role["commands"])}
        if isinstance(role, Mapping) and isinstance(role.get("commands"), list)
        else role
        for name, role in roles.items()
    }
    return {**protocol, "taskRoles": changed}


def is_job_name(name: str) -> bool:
    """Whether a job may be one of ours. The user's other jobs are not read."""
    return _OURS.fullmatch(name) is not None


def start_of_job(job: str, attempt: int) -> str:
    """The name of a job attempt's start, as in `launcher/openpai/identity.py`."""
    return f"{job[-_LETTERS:].lstrip('-_')}-{attempt}"


@dataclass(frozen=True)
class Job:
    """A job that is one of our runs. `content`: its own text. `marks`: its current tags."""

    user: str
    name: str
    content: Mapping[str, Any]
    marks: tuple[str, ...] = field(default=())

    @classmethod
    def read(cls, user: str, name: str, config: str, marks: Any) -> "Job | None":
        """The job. None if it is not one of ours: anybody may submit any job."""
        content: Any = None
        # Clusters respond with YAML or JSON, with any content type. JSON parses fifty times faster.
        for load in (json.loads, parse_job_text):
            try:
                content = load(config)
                break
            except (ValueError, RecursionError):
                continue
        own = _own_part(content) if isinstance(content, Mapping) else {}
        if own.get("version") != VERSION or not _has_nodes_with_roles(own):
            return None
        return cls(user, name, content, texts_in_list(marks))

    @property
    def fingerprint(self) -> str:
        return self._label("fingerprint")

    @property
    def display_name(self) -> str:
        return self._label("displayName")

    @property
    def tags(self) -> dict[str, str]:
        given = _own_part(self.content).get("tags")
        tags = {str(key): str(value) for key, value in given.items()} if isinstance(given, Mapping) else {}
        changed = {key.removeprefix("tag."): value for key, value in self._changes.items() if key.startswith("tag.")}
        return {key: value for key, value in {**tags, **changed}.items() if value}

    @property
    def attempt(self) -> int:
        attempt = _own_part(self.content).get("attempt")
        return attempt if type(attempt) is int and attempt > 0 else 1

    @property
    def maximum_minutes(self) -> int | None:
        minutes = _own_part(self.content).get("maximumRuntimeMinutes")
        return minutes if type(minutes) is int and minutes > 0 else None

    @property
    def released(self) -> bool:
        return RELEASED in self.marks

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        return list(_own_part(self.content)["nodes"])

    def run_id(self, node: Mapping[str, Any]) -> str:
        return str(run_id(self.user, self.name, str(node["name"]), str(node["role"])))

    @property
    def unseen_nodes(self) -> list[NodeRun]:
        """Its nodes, with states that are not read yet."""
        return [NodeRun(str(node["name"]), self.run_id(node), "") for node in self.nodes]

    @property
    def changing_marks(self) -> dict[str, str]:
        """The tags for changed names and tags, by what they change."""
        pairs = (
            mark.removeprefix(_CHANGED).partition("=")
            for mark in self.marks
            if mark.startswith(_CHANGED) and "=" in mark
        )
        return {key: f"{_CHANGED}{key}={value}" for key, _, value in pairs}

    @property
    def _changes(self) -> dict[str, str]:
        return {key: unquote(mark.partition("=")[2]) for key, mark in self.changing_marks.items()}

    def _label(self, key: str) -> str:
        value = self._changes.get(key) or _own_part(self.content).get(key)
        return value if isinstance(value, str) else ""

    @property
    def title(self) -> str:
        """The run's name for people."""
        tags = self.tags
        return f"{tags.get('job', '')}/{tags.get('run', '')}" if tags.get("run") else self.display_name or self.name

    @property
    def protocol(self) -> dict[str, Any]:
        """The job as the stack described it."""
        extras = dict(self.content.get("extras") or {})
        own = {key: value for key, value in (extras.pop(EXTRAS, None) or {}).items() if key not in _OWN}
        extras |= {EXTRAS: own} if own else {}
        rest = {key: value for key, value in self.content.items() if key not in ("name", "extras")}
        rest = _with_commands(rest, lambda commands: [one for one in commands if not str(one).startswith(_EXPECTS)])
        return {**rest, "extras": extras} if extras else rest

    @property
    def mounts(self) -> dict[str, str]:
        """The paths in tasks of the cluster's storages, by the storages' names."""
        rows = (self.content.get("extras") or {}).get("storages")
        storages = [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []
        return {str(row.get("name")): str(row.get("mountPath") or f"/mnt/{row.get('name')}") for row in storages}

    def storage_place(self, folder: str | None) -> tuple[str, str] | None:
        """The storage of a folder, and the path on it. None if it is on no storage."""
        parts = urlsplit(folder or "")
        if parts.scheme != "file":
            return None
        path = PurePosixPath(unquote(parts.path))
        for name, mount in self.mounts.items():
            is_plain = name and "/" not in name and name not in (".", "..")
            if is_plain and path.is_relative_to(mount) and ".." not in path.parts:
                return name, str(path.relative_to(mount))
        return None

    @property
    def folder(self) -> str | None:
        """The address of the run's folder. None if it has none."""
        return self._label("folder") or None

    def labels(self, spec: RunSpec) -> dict[str, str]:
        """The tags of a job whose run was renamed: those that differ from the job's own text."""
        own = _own_part(self.content)
        before = {"displayName": own.get("displayName"), "fingerprint": own.get("fingerprint")}
        wanted: dict[str, Any] = {"displayName": spec.display_name, "fingerprint": spec.fingerprint}
        tags = own.get("tags")
        given = tags if isinstance(tags, Mapping) else {}
        for key in sorted({*given, *spec.tags}):
            before[f"tag.{key}"], wanted[f"tag.{key}"] = given.get(key) or "", spec.tags.get(key) or ""
        changed = {key: quote(value, safe=" /~:") for key, value in wanted.items() if value != before[key]}
        return {key: f"{_CHANGED}{key}={value}"[:_LONGEST_TAG] for key, value in changed.items()}


def run_id(user: str, job: str, node: str, role: str) -> RunId:
    """The id of a node's run. A node is called `<role>-<index>`, as its task."""
    number = node.rpartition("-")[2]
    return RunId(user, job, role, int(number) if number.isascii() and number.isdigit() else 0)


def inputs_of_job(job: Job, uri: str) -> Properties:
    """The inputs that would make this run. The cluster masks the values of secrets."""
    defaults = job.content.get("defaults")
    named = defaults.get("virtualCluster") if isinstance(defaults, Mapping) else None
    return {
        "platform": PLATFORM,
        "cluster": {"uri": uri, "user": job.user, "virtualCluster": str(named or "default")},
        "displayName": job.display_name,
        "tags": job.tags,
        "attempt": job.attempt,
        "nodes": [dict(node) for node in job.nodes],
        "protocol": job.protocol,
    }


def moment_of(milliseconds: Any) -> str | None:
    """A time of the REST API, which is in milliseconds since 1970, with its time zone."""
    if type(milliseconds) not in (int, float) or milliseconds <= 0:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def texts_in_list(values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _own_part(content: Mapping[str, Any] | None) -> Mapping[str, Any]:
    extras = content.get("extras") if content else None
    own = extras.get(EXTRAS) if isinstance(extras, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _has_nodes_with_roles(own: Mapping[str, Any]) -> bool:
    nodes = own.get("nodes")
    if not isinstance(nodes, list) or not nodes:
        return False
    return all(isinstance(node, Mapping) and node.get("name") and node.get("role") for node in nodes)
