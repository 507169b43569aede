# SPDX-License-Identifier: Apache-2.0
"""A distributed job of ADS (`kind: distributed`) as a job. What it names by id becomes `existing`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from catalog import frameworks
from catalog.tables import table
from components.platform.new_stacks import MachineNeeds
from schemas.unfilled_values import PLACEHOLDER
from trainyard.bring.keys import judge_document
from trainyard.bring.model import BroughtJob, name_for_stack
from trainyard.bring.notes import CHOICE, IMPOSSIBLE, LEFT_OUT, OTHERWISE, SENSELESS, NoteTaker, is_secret_text
from trainyard.bring.yaml_text import YamlDocument

_INFRASTRUCTURE = ("spec", "infrastructure", "spec")
_CLUSTER = ("spec", "cluster", "spec")
_RUNTIME = ("spec", "runtime", "spec")
_ROLES = {"main": "MAIN", "worker": "WORKER", "ps": "PS"}
_OCID = re.compile(r"ocid1\.[a-z0-9]+\.[a-z0-9-]+\.[a-z0-9-]*\.(\.|[a-z0-9-]+\.)*[A-Za-z0-9_-]+")
_WORK_DIR = re.compile(r"oci://([^@/]+)@[^/]+/?(.*)")
_REGISTRY = re.compile(r"(?P<key>[a-z0-9-]+)\.ocir\.io/[^/]+/(?P<repository>[a-z0-9._/-]+?)(?::(?P<tag>[\w.-]+))?")
_RANGE = re.compile(r"(\d+)(?:[:-](\d+))?")


def is_ads_job(document: YamlDocument) -> bool:
    return isinstance(document.data, Mapping) and document.data.get("kind") == "distributed"


def read_ads_job(document: YamlDocument) -> tuple[BroughtJob, NoteTaker]:
    """BringError if it has no cluster that trains here."""
    taker = NoteTaker(document.name)
    judge_document(document, table("bring/ads")["keys"], taker)
    kind = str(document.at("spec", "cluster", "kind") or "").upper()
    clusters: Mapping[str, str] = table("bring/ads")["clusters"]
    if kind not in clusters:
        message = f"`{kind[:40]}` is no cluster that is known here, which are {', '.join(clusters)}"
        raise taker.refuse(SENSELESS, document.line("spec", "cluster", "kind"), message, "write one of them")
    reader = _AdsReader(document, taker, kind, clusters[kind])
    return reader.read(), taker


class _AdsReader:
    def __init__(self, document: YamlDocument, taker: NoteTaker, kind: str, framework: str) -> None:
        self._document, self._taker, self._kind, self._framework = document, taker, kind, framework
        servers = document.at(*_CLUSTER, "ps")
        self._strategy = ""
        if framework == "tensorflow":
            self._strategy = "parameter-server" if servers else "multi-worker-mirrored"
        elif servers:
            message = f"a cluster {kind} has no parameter servers"
            raise taker.refuse(IMPOSSIBLE, document.line(*_CLUSTER, "ps"), message, "remove `ps`")
        self._ports: dict[str, Any] = {}
        self._options: dict[str, Any] = {}

    def read(self) -> BroughtJob:
        named = self._text(*_CLUSTER, "name") or self._text(*_INFRASTRUCTURE, "displayName") or self._framework
        keys: dict[str, Any] = {"framework": self._framework}
        if self._strategy:
            keys["strategy"] = self._strategy
        environment = {**self._environment(*_CLUSTER, "config", "env"), **self._environment(*_RUNTIME, "env")}
        self._start_options(*_CLUSTER, "config", "startOptions")
        keys |= {"roles": self._roles(), **self._code(), "command": self._command()}
        keys |= {"env": environment} if environment else {}
        keys |= {"ports": self._ports} if self._ports else {}
        keys |= {"options": self._options} if self._options else {}
        size = self._document.at(*_INFRASTRUCTURE, "blockStorageSize")
        keys |= {"blockStorageGb": max(50, int(size))} if isinstance(size, int) else {}
        keys |= {"shape": self._shape()} if self._text(*_INFRASTRUCTURE, "shapeName") else {}
        image, config = self._image()
        keys |= {"image": image} if image else {}
        keys["runs"] = {"base": {}}
        script = self._text(*_RUNTIME, "entryPoint")
        return BroughtJob(
            name_for_stack(named), keys, MachineNeeds(), script=script, config={**self._existing(), **config}
        )

    def _text(self, *path: str | int) -> str:
        value = self._document.at(*path)
        return "" if value is None or isinstance(value, Mapping | list) else str(value)

    def _line(self, *path: str | int) -> int:
        return self._document.line(*path)

    def _roles(self) -> Mapping[str, Any]:
        """The framework's roles, by their modes."""
        by_mode: dict[str, str] = {
            row.mode: name
            for name, row in frameworks.framework_row(self._framework, self._strategy or None).roles.items()
        }
        roles: dict[str, Any] = {}
        for called, mode in _ROLES.items():
            path = (*_CLUSTER, called)
            table_of_role = self._document.table(*path)
            if not table_of_role and called != "main":
                continue
            replicas = table_of_role.get("replicas") or 1
            if not isinstance(replicas, int) or replicas < 1:
                message = f"`replicas` of {called} is not a number of nodes"
                raise self._taker.refuse(SENSELESS, self._line(*path, "replicas"), message, "write a number")
            replicas = 1 if called == "main" else replicas
            environment = self._environment(*path, "config", "env")
            self._start_options(*path, "config", "startOptions")
            name = by_mode.get(mode, called)
            roles[name] = {"replicas": replicas, "env": environment} if environment else replicas
        return roles

    def _environment(self, *path: str | int) -> dict[str, str]:
        found: dict[str, str] = {}
        reserved = tuple(table("bring/ads")["reserved"]["prefixes"])
        ports: Mapping[str, Mapping[str, str]] = table("bring/ads")["variables"]
        for index, item in enumerate(self._document.at(*path) or ()):
            line = self._line(*path, index)
            name, value = (
                (str(item.get(key, "")) for key in ("name", "value")) if isinstance(item, Mapping) else ("", "")
            )
            if self._kind in ports.get(name, {}) and value.isdigit():
                self._ports[ports[name][self._kind]] = int(value)
            elif not name:
                self._taker.note(LEFT_OUT, line, "a variable without a name was left out", "give it a `name`")
            elif is_secret_text(name, value):
                remedy = "write it with `trainyard secret set`, under `env` of the job"
                self._taker.note(LEFT_OUT, line, f"`{name}` was left out: it is a secret in plain text", remedy)
            elif name.startswith(reserved):
                self._taker.note(LEFT_OUT, line, f"`{name}` was left out: every node gets it anyway", "nothing")
            else:
                found[name] = value
        return found

    def _start_options(self, *path: str | int) -> None:
        """What Dask's processes are started with becomes ports and options. Others have none."""
        rows: Mapping[str, Mapping[str, Any]] = table("bring/ads")["start_options"]
        given = self._document.at(*path) or ()
        words = [word for item in ([given] if isinstance(given, str) else given) for word in shlex.split(str(item))]
        while words:
            name, joined, value = words.pop(0).partition("=")
            row = rows.get(name, {}) if self._framework == "dask" else {}
            if not joined and "value" not in row and words and not words[0].startswith("--"):
                value = words.pop(0)
            match = _RANGE.fullmatch(value)
            if "port" in row and match:
                first, last = int(match[1]), int(match[2] or match[1])
                self._ports[row["port"]] = first if first == last else f"{first}-{last}"
            elif "value" in row or ("option" in row and value.isdigit()):
                self._options[row["option"]] = row.get("value", int(value or 0))
            else:
                message = f"the start option `{name[:40]}` was left out: the launcher starts these processes"
                self._taker.note(LEFT_OUT, self._line(*path), message, "see the options and ports of the framework")

    def _command(self) -> str:
        script = self._text(*_RUNTIME, "entryPoint")
        if not script:
            message = "it does not say which script to run (`entryPoint`)"
            raise self._taker.refuse(SENSELESS, self._line(*_RUNTIME), message, "write it")
        words = [script]
        for key in ("args", "kwargs"):
            given = self._document.at(*_RUNTIME, key)
            words += [str(word) for word in given] if isinstance(given, list) else shlex.split(str(given or ""))
        if self._document.at(*_RUNTIME, "kwargs"):
            message = "`kwargs` stand behind the arguments of the command, since a command has only these"
            self._taker.note(CHOICE, self._line(*_RUNTIME, "kwargs"), message, "check their order")
        return shlex.join(words)

    def _code(self) -> Mapping[str, Any]:
        how, address = self._text("spec", "runtime", "type"), self._text(*_RUNTIME, "uri")
        if how == "git" and address:
            named = {"url": address}
            for key, field in (("branch", "branch"), ("commit", "commit"), ("gitSecretId", "secret")):
                if text := self._text(*_RUNTIME, key):
                    named[field] = text
            return {"code": {"git": named}}
        if how == "remote" and address:
            message = f"the code in {address[:80]} was left out: a job has no code in a bucket"
            remedy = "put it into a folder beside the stack file, and name that under `code`"
            self._taker.note(OTHERWISE, self._line(*_RUNTIME, "uri"), message, remedy)
            return {}
        # ADS builds the folder into the image. Here the folder is the job's code.
        return {"code": "."}

    def _shape(self) -> Any:
        name = self._text(*_INFRASTRUCTURE, "shapeName")
        details = self._document.table(*_INFRASTRUCTURE, "shapeConfigDetails")
        memory = details.get("memoryInGBs", details.get("memory_in_gbs"))
        if not name.endswith("Flex"):
            return name
        return {"name": name, "ocpus": details.get("ocpus") or 1, "memoryGb": memory or 16}

    def _image(self) -> tuple[str, Mapping[str, Any]]:
        """The image of the cluster, in the repository that has it already."""
        places: tuple[tuple[str, ...], ...] = ((), ("main",), ("worker",), ("ps",))
        images = {path: self._text(*_CLUSTER, *path, "image") for path in places}
        text = next(filter(None, images.values()), "")
        for path, other in images.items():
            if other and other != text:
                message = f"`image` of {path[0]} was left out: all nodes of a job have the same, {text[:80]}"
                self._taker.note(
                    LEFT_OUT, self._line(*_CLUSTER, *path, "image"), message, "make one image for all roles"
                )
        match = _REGISTRY.fullmatch(text)
        if not match:
            return "", {}
        regions = {key: name for name, key in table("regions")["keys"].items()}
        region = regions.get(match["key"]) or (match["key"] if match["key"] in table("regions")["keys"] else "")
        config = {"trainyard:registry": {"existing": match["repository"]}}
        return f"${{registry}}:{match['tag'] or 'latest'}", {**({"oci:region": region} if region else {}), **config}

    def _existing(self) -> Mapping[str, Any]:
        """What it names by id, where the stack would make it."""
        found: dict[str, Any] = {}
        named = {
            key: self._id(key, kind)
            for key, kind in (
                ("projectId", "datascienceproject"), ("compartmentId", "compartment"), ("subnetId", "subnet"),
                ("logGroupId", "loggroup"), ("logId", "log"),
            )
            if self._text(*_INFRASTRUCTURE, key)
        }  # fmt: skip
        if "compartmentId" in named:
            found["trainyard:compartment"] = named["compartmentId"]
        if "projectId" in named:
            found["trainyard:project"] = {"existing": named["projectId"]}
        if "subnetId" in named:
            found["trainyard:network"] = {"subnet": named["subnetId"]}
        if "logGroupId" in named:
            log = {"log": named["logId"]} if "logId" in named else {}
            found["trainyard:logs"] = {"existing": {"group": named["logGroupId"], **log}}
        tags = self._document.table(*_INFRASTRUCTURE, "freeformTags")
        if tags:
            found["trainyard:tags"] = {str(key): str(value) for key, value in tags.items()}
        if match := _WORK_DIR.fullmatch(self._text(*_CLUSTER, "workDir")):
            found["trainyard:bucket"] = {"existing": match[1]}
            if match[2].strip("/"):
                message = f"the prefix `{match[2][:60]}` of `workDir` was left out: runs have folders of their own"
                self._taker.note(LEFT_OUT, self._line(*_CLUSTER, "workDir"), message, "nothing, if no script names it")
        return found

    def _id(self, key: str, kind: str) -> str:
        text = self._text(*_INFRASTRUCTURE, key)
        return text if _OCID.fullmatch(text) else f"ocid1.{kind}.oc1..{PLACEHOLDER}"
