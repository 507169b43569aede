# SPDX-License-Identifier: Apache-2.0
"""Takes a job: its text, its rules, what its user may use, and whether it can ever have a place."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import Mapping
from typing import Any

from localcloud.api import clock
from localcloud.api.http import Reply
from localcloud.openpai.accounts import VIRTUAL_CLUSTERS, Person
from localcloud.openpai.environment import MOST_PORTS
from localcloud.openpai.errors import forbidden, invalid_protocol, job_exists, no_virtual_cluster, too_much
from localcloud.openpai.places import needs, needs_of_job
from localcloud.openpai.policies import JobPolicy, policy_of
from localcloud.openpai.rest import Parts, RestCall
from localcloud.openpai.storages import require_storages
from localcloud.openpai.store import JobRow
from provider.openpai.protocol import LONGEST_TEXT, NotAJobError, masked, parse, problems

# YAML can say "the same again", so a short text can be an endless job: too many values, or a long text too often.
_MOST_VALUES = 200_000
_MOST_LETTERS = 2 * LONGEST_TEXT
# JSON has no other numbers that everybody reads alike.
_TOO_LARGE = 1 << 53
_SHOWN_PROBLEMS = 5


def submit(call: RestCall) -> Reply:
    return Reply(later=lambda: _submit(call))


async def _submit(call: RestCall) -> Reply:
    text = _decoded(call.body)
    # A hostile text takes seconds to read. Nobody else waits for that.
    protocol, config = await asyncio.to_thread(judged_and_masked, text)
    person, parts = call.by.person, call.parts
    name = f"{person.name}~{protocol['name']}"
    if parts.store.job(name):
        raise job_exists(protocol["name"])
    policy = policy_of(protocol)
    _require_cluster(parts, person, policy)
    require_storages(parts.home, protocol)
    _keep(parts, name, policy, protocol, config)
    parts.controller.submitted(name)
    message = f"Update job {protocol['name']} for user {person.name} successfully."
    return Reply(202, {"status": 202, "message": message})


def judged_and_masked(text: str) -> tuple[dict[str, Any], str]:
    """The job, and its text in JSON without secrets."""
    protocol = judged(text)
    try:
        return protocol, json.dumps(parse(masked(text)))
    except NotAJobError:
        raise invalid_protocol("without its secrets this is no job: nothing else may refer to their values") from None


def judged(text: str) -> dict[str, Any]:
    """The job in a text. Refused unless it is valid."""
    try:
        protocol = parse(text)
    except NotAJobError as error:
        raise invalid_protocol(str(error)) from None
    _require_plain(protocol)
    if wrong := problems(protocol):
        more = f"; and {len(wrong) - _SHOWN_PROBLEMS} more" if len(wrong) > _SHOWN_PROBLEMS else ""
        raise invalid_protocol("; ".join(str(each) for each in wrong[:_SHOWN_PROBLEMS]) + more)
    for role, row in protocol["taskRoles"].items():
        if sum((row["resourcePerInstance"].get("ports") or {}).values()) > MOST_PORTS:
            raise invalid_protocol(f"taskRoles.{role}.resourcePerInstance.ports: a task gets {MOST_PORTS} at the most")
    return protocol


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise invalid_protocol("this is not UTF-8") from None


def _require_plain(protocol: Mapping[str, Any]) -> None:
    """YAML knows more kinds of values than a job has."""
    left: list[Any] = [protocol]
    count = letters = 0
    while left:
        value, count = left.pop(), count + 1
        letters += len(value) if isinstance(value, str) else 0
        if count > _MOST_VALUES or letters > _MOST_LETTERS:
            raise invalid_protocol("the job repeats itself too often")
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise invalid_protocol("a key is not a text")
            letters += sum(map(len, value))
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif not isinstance(value, str | int | float | bool | None):
            raise invalid_protocol(f"a value of the type {type(value).__name__} has no place in a job")
        elif isinstance(value, int | float) and not abs(value) < _TOO_LARGE:
            raise invalid_protocol("a number is too large, or is none")


def _require_cluster(parts: Parts, person: Person, policy: JobPolicy) -> None:
    """The virtual cluster, if it is there, the user may take it, and it is large enough. A job for which it is too full
    at the moment waits."""
    name = policy.virtual_cluster
    cluster = next((each for each in VIRTUAL_CLUSTERS if each.name == name), None)
    if cluster is None:
        raise no_virtual_cluster(name, 400)
    if name not in person.virtual_clusters:
        raise forbidden(f"User {person.name} is not allowed to do operation in {name}")
    total = parts.places.total(cluster)
    wanted = [needs_of_job(policy)] if policy.gang else [needs(role) for role in policy.roles]
    for need in wanted:
        if lacking := total.lacks(need):
            what = ", ".join(f"{key} {getattr(need, key)} of {getattr(total, key)}" for key in lacking)
            raise too_much(f"The job needs more than virtual cluster {name} has: {what}")


def _keep(parts: Parts, name: str, policy: JobPolicy, protocol: Mapping[str, Any], config: str) -> None:
    user, _, job = name.partition("~")
    row = JobRow(
        name, user, job, str(uuid.uuid4()), policy.virtual_cluster, clock.now(), tasks=policy.tasks,
        roles=len(policy.roles), gpus=policy.gpus,
    )  # fmt: skip
    try:
        with parts.store.transaction():
            parts.store.add(row, config, protocol)
    except sqlite3.IntegrityError:
        raise job_exists(job) from None
