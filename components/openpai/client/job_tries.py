# SPDX-License-Identifier: Apache-2.0
"""Tries on OpenPAI: separate jobs, next to those of the stack's runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path as Folder
from typing import Any

from components.openpai.client.cluster_jobs import ClusterJobs
from components.openpai.client.cluster_session import Session
from components.openpai.client.inputs import normal_form
from components.openpai.client.jobs import Job, inputs_of_job
from components.openpai.plain_command import export_line, json_word
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan, openpai_job, openpai_plan
from components.openpai.run_inputs import openpai_run_inputs, read_files
from components.plan.model import RunPlan
from components.platform.calls import Call
from components.platform.runs import liked_by
from components.platform.tries import KEYS, LAUNCH, PlannedTry, ReadyTry, TryError, refuse_taken_name
from components.platform.values import Properties

Path = tuple[str | int, ...]
_NOTHING = object()
_EXPORT = re.compile(r"(?:export )?(?P<name>\w+)=")
# Every task exports its launch document: JSON in quotation marks.
_LAUNCHED = re.compile(rf"export {LAUNCH}='(?P<document>[^']*)'")
# The ways to start the command of a job without such a document: bash, or a shell function for each process.
_RUNS = re.compile(r"trainyard_command=|trainyard_process\(\)")
# Parts of a job, by their keys in the stack file.
_KEYS = {
    "prerequisites": "image", "parameters": "parameters", "secrets": "env", "jobRetryCount": "roles",
    "defaults": "cluster", "taskRoles": "roles",
}  # fmt: skip
_EXTRAS = {"storages": "storage", "hivedScheduler": "skus", "gangAllocation": "roles", "trainyard": "storage"}
_ROLE = {"commands": "code", "resourcePerInstance": "skus", "dockerImage": "image"}


def merge_protocols(deployed: Any, like: Any, own: Any, path: Path = ()) -> Any:
    """The merged job. Raises TryError if the file has changed the same part as the try."""
    if like == own:
        return deployed
    if deployed == like:
        return own
    if isinstance(deployed, Mapping) and isinstance(like, Mapping) and isinstance(own, Mapping):
        rows = {
            key: merge_protocols(
                deployed.get(key, _NOTHING), like.get(key, _NOTHING), own.get(key, _NOTHING), (*path, key)
            )
            for key in {**deployed, **like, **own}
        }
        return {key: value for key, value in rows.items() if value is not _NOTHING}
    commands = path[-1:] == ("commands",) and isinstance(deployed, list)
    if commands and len(deployed) == len(like) == len(own):
        rows_of = zip(deployed, like, own, strict=True)
        return [merge_protocols(row[0], row[1], row[2], (*path, number)) for number, row in enumerate(rows_of)]
    before, now, wanted = (_launch_document_in(text) for text in (deployed, like, own))
    if before is not None and now is not None and wanted is not None:
        return export_line(LAUNCH, json_word(merge_protocols(before, now, wanted, (*path, LAUNCH))))
    raise TryError(
        f"`{key_of(path, like)}` has changed in the stack file since it was deployed, and the try changes it as well: "
        "it is unclear which parts of the old value to keep. Run `up` first: it deploys the change."
    )


def differing_keys(deployed: Any, like: Any, path: Path = ()) -> Iterator[str]:
    """The keys of the stack file that differ from what is deployed."""
    if deployed == like:
        return
    if isinstance(deployed, Mapping) and isinstance(like, Mapping):
        for key in sorted({*deployed, *like}):
            yield from differing_keys(deployed.get(key, _NOTHING), like.get(key, _NOTHING), (*path, key))
    elif (before := _launch_document_in(deployed)) is not None and (now := _launch_document_in(like)) is not None:
        yield from differing_keys(before, now, (*path, LAUNCH))
    elif path[-1:] == ("commands",) and isinstance(deployed, list) and isinstance(like, list):
        for number, (before, now) in enumerate(zip_longest(deployed, like, fillvalue=_NOTHING)):
            yield from differing_keys(before, now, (*path, number))
    else:
        yield key_of(path, like if isinstance(like, str) else deployed)


def _launch_document_in(command: Any) -> Any:
    """The launch document in a command. None if there is none."""
    match = _LAUNCHED.fullmatch(command) if isinstance(command, str) else None
    try:
        return json.loads(match["document"]) if match else None
    except (ValueError, RecursionError):
        return None


def key_of(path: Path, value: Any) -> str:
    """The key of a job in the stack file that determines a part of the protocol."""
    first = str(path[0]) if path else ""
    if first == "extras" and len(path) > 1:
        return _EXTRAS.get(str(path[1]), "plugins")
    if LAUNCH in path[:-1]:
        return KEYS.get(str(path[path.index(LAUNCH) + 1]), "framework")
    if first == "taskRoles" and len(path) > 2:
        part = str(path[2])
        text = value if part == "commands" and isinstance(value, str) else ""
        if _RUNS.match(text):
            return "command"
        named = _EXPORT.match(text)
        if named is not None and not named["name"].startswith("trainyard_"):
            return "command" if named["name"] == LAUNCH else f"env.{named['name']}"
        return _ROLE.get(part, "roles")
    return _KEYS.get(first, first)


def prepare_openpai_try(jobs: ClusterJobs, call: Call, planned: PlannedTry, folder: Folder) -> ReadyTry:
    plan, job = openpai_plan(planned.plan), openpai_job(planned.job)
    own = _inputs_for_caller(jobs.session, plan, job, planned.run, folder)
    _refuse_secrets(planned, own["protocol"])
    deployed = _find_deployed_job(jobs, call, planned)
    if deployed is None or planned.like is None:
        return ReadyTry(planned, {**own, "until": "accepted"}, ())
    like = _inputs_for_caller(jobs.session, plan, job, planned.like, folder)
    before = inputs_of_job(deployed, jobs.session.uri)
    _refuse_secrets(planned, before["protocol"])
    protocol = merge_protocols(before["protocol"], like["protocol"], own["protocol"])
    inputs = {
        **before, "protocol": protocol, "nodes": own["nodes"], "displayName": own["displayName"],
        "tags": own["tags"], "attempt": 1, "until": "accepted", "expects": own.get("expects"),
    }  # fmt: skip
    kept = differing_keys(normal_form(before["protocol"]), normal_form(like["protocol"]))
    return ReadyTry(planned, inputs, tuple(dict.fromkeys(kept)))


def _inputs_for_caller(
    session: Session, plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan, folder: Folder
) -> Properties:
    """The inputs with which `up` would start the run, on the caller's cluster."""
    try:
        files = read_files(plan, job, folder)
    except (OSError, UnicodeError) as error:
        raise TryError(f"a file beside the stack file cannot be read: {error}") from error
    inputs = openpai_run_inputs(plan, job, run, files, lambda text: text)
    cluster = {**inputs["cluster"], "uri": session.uri, "user": session.user or inputs["cluster"]["user"]}
    return {key: value for key, value in {**inputs, "cluster": cluster}.items() if key != "token"}


def _find_deployed_job(jobs: ClusterJobs, call: Call, planned: PlannedTry) -> Job | None:
    """The newest job of the run that the try repeats. None if the job has no runs in the stack file."""
    stack, job = planned.plan.stack, planned.job.name
    past = jobs.runs_of(call, jobs.session.user)
    own = [one for one in past if (one.tags.get("stack"), one.tags.get("job")) == (stack, job)]
    refuse_taken_name(planned, (one.tags.get("run") for one in own))
    if planned.like is None:
        return None
    like = planned.like.name
    found = (one for one in own if one.tags.get("run") == like and liked_by(one.fingerprint) is None)
    newest = next(found, None)
    if newest is None:
        raise TryError(f"the run {job}/{like} is not deployed on {jobs.session.uri}: `up` of the stack starts it first")
    return newest


def _refuse_secrets(planned: PlannedTry, protocol: Mapping[str, Any]) -> None:
    """Raises an error if the job has secrets: they are encrypted in the file, and masked by the cluster."""
    secrets = protocol.get("secrets")
    if secrets:
        named = f" ({', '.join(sorted(secrets))})" if isinstance(secrets, Mapping) else ""
        raise TryError(
            f"the job {planned.job.name} has secrets{named}, which a try cannot bring: "
            "add a run to the stack file, and `up` starts it"
        )
