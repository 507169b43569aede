# SPDX-License-Identifier: Apache-2.0
"""The format of tickets in a cluster's queue: writing and reading (docs/decisions/0021). Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from components.platform.runs import NodeRun, RunSpec, read_launch_document
from components.platform.values import Properties
from schemas.convert import camel_case

VERSION = 1
ROOT = ".trainyard/clusters"
PLATFORM = "aws-dl1"
# The keys of a ticket about its cluster. The rest follows from the ticket's own place.
_CLUSTER_TEXTS = ("region", "stack", "logGroup", "secret", "code", "launcher")
# Names of nodes are parts of object keys.
_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,255}")
_REGION = re.compile(r"[a-z0-9-]{1,63}")
# The limit of stack files. A ticket with more was not written by a stack.
_MOST_NODES = 10_000
_LONGEST_TAG = 1000
_NUMBER = re.compile(r"[0-9]{8}")
_ID = re.compile(rf"{PLATFORM}/(?P<bucket>[^/]+)/(?P<job>[^/]+)/(?P<number>[0-9]{{8}})/(?P<node>[^/]+)")


@dataclass(frozen=True)
class Cluster:
    """The place of a job's queue and instances. A run's id has only bucket and job; its ticket has the rest."""

    bucket: str
    job: str
    region: str | None = None
    stack: str = ""
    log_group: str = ""
    secret: str | None = None
    code: str | None = None
    launcher: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Cluster":
        region = values.get("region")
        texts = {row.name: str(values[key]) for row in fields(cls) if values.get(key := camel_case(row.name))}
        # Clients put it into a host name.
        known = isinstance(region, str) and _REGION.fullmatch(region)
        return replace(cls(**texts), region=region if known else None)

    def inputs(self) -> dict[str, str]:
        """What `of` reads. What is not known is left out."""
        return {camel_case(name): text for name, text in vars(self).items() if text}

    @property
    def folder(self) -> str:
        return f"{ROOT}/{self.job}"

    def ticket(self, number: int) -> str:
        return f"{self.folder}/queue/{number:08}.json"

    def start(self, number: int, node: str) -> str:
        return f"{self.folder}/starts/{number:08}/{node}.json"

    def cancellation(self, number: int) -> str:
        return f"{self.folder}/starts/{number:08}/cancel"

    def node(self, name: str) -> str:
        return f"{self.folder}/nodes/{name}.json"


class RunId(NamedTuple):
    """`aws-dl1/<bucket>/<job>/<number>/<node>`."""

    bucket: str
    job: str
    number: int
    node: str

    def __str__(self) -> str:
        return f"{PLATFORM}/{self.bucket}/{self.job}/{self.number:08}/{self.node}"

    @classmethod
    def parse(cls, text: str) -> "RunId | None":
        parts = _ID.fullmatch(text)
        return cls(parts["bucket"], parts["job"], int(parts["number"]), parts["node"]) if parts else None

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.bucket, self.job)


def number_of(key: str) -> int | None:
    """The number of the ticket in this object. None if the object is not a ticket."""
    name, dot, suffix = key.rpartition("/")[2].partition(".")
    return int(name) if dot and suffix == "json" and _NUMBER.fullmatch(name) else None


@dataclass(frozen=True)
class Ticket:
    """`content`: the ticket's JSON, for the nodes and for later readers."""

    cluster: Cluster
    number: int
    content: Mapping[str, Any]

    @classmethod
    def read(cls, bucket: str, job: str, number: int, body: bytes) -> "Ticket | None":
        """The ticket. None if the object is not a ticket: others can write to the bucket, too."""
        try:
            content = json.loads(body)
            # JSON can contain lone surrogates, which no API accepts.
            json.dumps(content, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return None
        if not isinstance(content, Mapping) or content.get("version") != VERSION or not _has_named_nodes(content):
            return None
        texts = {key: content[key] for key in _CLUSTER_TEXTS if isinstance(content.get(key), str)}
        return cls(Cluster.of({**texts, "bucket": bucket, "job": job}), number, content)

    def text(self, key: str) -> str:
        value = self.content.get(key)
        return value if isinstance(value, str) else ""

    @property
    def start(self) -> str:
        return f"s{self.number:08}"

    @property
    def fingerprint(self) -> str:
        return self.text("fingerprint")

    @property
    def tags(self) -> Mapping[str, str]:
        tags = self.content.get("tags")
        rows = tags.items() if isinstance(tags, Mapping) else ()
        return {key: text[:_LONGEST_TAG] for key, text in rows if isinstance(text, str)}

    @property
    def title(self) -> str:
        """The run's name for people, with its start."""
        return f"{self.tags.get('run') or self.text('displayName') or self.text('run')} ({self.start})"

    @property
    def released(self) -> bool:
        return self.content.get("released") is True

    @property
    def nodes(self) -> list[Mapping[str, Any]]:
        return list(self.content["nodes"])

    @property
    def node_names(self) -> list[str]:
        return [str(node["name"]) for node in self.nodes]

    @property
    def unseen_nodes(self) -> list[NodeRun]:
        """Its nodes, with states that are not read yet."""
        return [NodeRun(name, self.run_id(name), "") for name in self.node_names]

    @property
    def body(self) -> bytes:
        return json.dumps(self.content, sort_keys=True, separators=(",", ":")).encode()

    def stream(self, node: str) -> str:
        """The log stream of a node. Jobs, and stacks, may share a log group."""
        parts = (self.text("stack"), self.cluster.job, self.text("run"), self.start, node)
        return "/".join(part for part in parts if part)

    def run_id(self, node: str) -> str:
        return str(RunId(self.cluster.bucket, self.cluster.job, self.number, node))


def _has_named_nodes(content: Mapping[str, Any]) -> bool:
    nodes = content.get("nodes")
    if not isinstance(nodes, list) or not 0 < len(nodes) <= _MOST_NODES:
        return False
    names = [node.get("name") if isinstance(node, Mapping) else None for node in nodes]
    return all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)


def ticket_of(spec: RunSpec, number: int, created_at: str) -> Ticket:
    """The ticket that starts a run."""
    cluster = Cluster.of(spec.own["cluster"])
    # A renamed run keeps its original name in its launch document.
    original_name = read_launch_document(spec.nodes[0].environment).get("run")
    current_name = spec.tags.get("run") or spec.display_name
    content = {
        "version": VERSION,
        "number": number,
        "start": f"s{number:08}",
        "createdAt": created_at,
        "fingerprint": spec.fingerprint,
        "run": original_name if isinstance(original_name, str) and original_name else current_name,
        "displayName": spec.display_name,
        "tags": dict(spec.tags),
        "stack": cluster.stack,
        **{key: text for key, text in cluster.inputs().items() if key in _CLUSTER_TEXTS},
        "image": spec.image,
        "maximumMinutes": spec.maximum_runtime_minutes,
        "expects": spec.expects or None,
        "secretVersion": spec.own.get("secretVersion"),
        "nodes": [
            {
                "name": node.name,
                "role": node.role,
                "rank": node.rank,
                "environment": dict(node.environment),
                "arguments": list(node.arguments),
            }
            for node in spec.nodes
        ],
    }
    return Ticket(cluster, number, {key: value for key, value in content.items() if value is not None})


def inputs_of_ticket(ticket: Ticket) -> Properties:
    """The inputs that would make this run, without secret variables: those are in the run's secret only."""
    inputs: Properties = {
        "platform": PLATFORM,
        "cluster": ticket.cluster.inputs(),
        "secretVersion": ticket.content.get("secretVersion"),
        "displayName": ticket.text("displayName"),
        "nodes": [dict(node) for node in ticket.nodes],
        "tags": dict(ticket.tags) or None,
        "image": ticket.content.get("image"),
        "maximumRuntimeMinutes": ticket.content.get("maximumMinutes"),
    }
    return {key: value for key, value in inputs.items() if value is not None}
