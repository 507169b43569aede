# SPDX-License-Identifier: Apache-2.0
"""Accepts a job like the REST server: validates its text, applies the server's rules, and checks the user's rights."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from components.openpai.protocol import (
    LONGEST_TEXT,
    NotAJobError,
    NotYamlError,
    mask_job_secrets,
    parse_job_text,
    protocol_refusals,
    shares_secrets,
)
from localcloud.openpai.accounts import Person
from localcloud.openpai.attempts import MOST_PORTS
from localcloud.openpai.job_store import JobRow
from localcloud.openpai.policies import JobPolicy, build_job_policy
from localcloud.openpai.rest import RestCall
from localcloud.openpai.rest_errors import forbidden_user, invalid_protocol, job_exists, unhandled_error
from localcloud.openpai.storages import require_storages
from localcloud.openpai.virtual_clusters import VIRTUAL_CLUSTERS, Allocations, job_needs
from localcloud.server import http
from localcloud.server.http import Reply

# Aliases can expand a short YAML text without limit: to too many values, or to many copies of a long text.
_MOST_VALUES = 200_000
_MOST_LETTERS = 2 * LONGEST_TEXT
# JSON parsers agree only on whole numbers below this.
_TOO_LARGE = 1 << 53
_SHOWN_PROBLEMS = 5


def submit_job(call: RestCall) -> Reply:
    return Reply(later=lambda: _accept_job(call))


async def _accept_job(call: RestCall) -> Reply:
    try:
        text = call.body.decode()
    except UnicodeDecodeError:
        raise invalid_protocol("this is not UTF-8") from None
    # In a thread, because a hostile text may take seconds to parse.
    protocol, config = await asyncio.to_thread(parse_and_mask_job, text)
    person, parts = call.by.person, call.parts
    _require_gang_fits(parts.allocations, protocol)
    name = f"{person.name}~{protocol['name']}"
    if parts.store.job(name):
        raise job_exists(protocol["name"])
    policy = require_allowed_policy(parts.home, person, protocol)
    user, _, job = name.partition("~")
    row = JobRow(
        name, user, job, str(uuid.uuid4()), policy.virtual_cluster, http.current_moment(), tasks=policy.tasks,
        roles=len(policy.roles), gpus=policy.gpus, priority=_hived_scheduler(protocol).get("jobPriorityClass"),
    )  # fmt: skip
    try:
        with parts.store.transaction():
            parts.store.add(row, config, protocol)
    except sqlite3.IntegrityError:
        raise job_exists(job) from None
    parts.controller.submitted(name)
    message = f"Update job {protocol['name']} for user {person.name} successfully."
    return Reply(202, {"status": 202, "message": message})


def parse_and_mask_job(text: str) -> tuple[dict[str, Any], str]:
    """The job in a text, and its JSON text without secrets."""
    protocol = parse_valid_job(text)
    if shares_secrets(text):
        raise invalid_protocol("without its secrets this is not a valid job: nothing else may refer to their values")
    return protocol, json.dumps(mask_job_secrets(protocol))


def parse_valid_job(text: str) -> dict[str, Any]:
    """The job in a text. Refuses an invalid one."""
    try:
        protocol = parse_job_text(text)
    except NotYamlError as error:
        raise unhandled_error(str(error)) from None
    except NotAJobError as error:
        raise invalid_protocol(str(error)) from None
    # Some values are valid in YAML, and not in a job.
    left: list[Any] = [protocol]
    count = letters = 0
    while left:
        value, count = left.pop(), count + 1
        letters += len(value) if isinstance(value, str) else 0
        if count > _MOST_VALUES or letters > _MOST_LETTERS:
            raise invalid_protocol("the job repeats itself too often")
        if isinstance(value, dict):
            letters += sum(map(len, value))
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif not isinstance(value, str | int | float | bool | None):
            raise invalid_protocol(f"a value of the type {type(value).__name__} has no place in a job")
        elif isinstance(value, int | float) and not abs(value) < _TOO_LARGE:
            raise invalid_protocol("a number is too large, infinite, or not a number")
    if wrong := protocol_refusals(protocol):
        # Refusals come before the server's own failures.
        named = [each for each in wrong if not each.unhandled]
        shown, hidden = (named or wrong)[:_SHOWN_PROBLEMS], len(named or wrong) - _SHOWN_PROBLEMS
        problems = "; ".join(map(str, shown)) + (f"; and {hidden} more" if hidden > 0 else "")
        raise (invalid_protocol if named else unhandled_error)(problems)
    for role, row in protocol["taskRoles"].items():
        ports = row["resourcePerInstance"].get("ports")
        if isinstance(ports, Mapping) and sum(ports.values()) > MOST_PORTS:
            raise invalid_protocol(f"taskRoles.{role}.resourcePerInstance.ports: a task gets {MOST_PORTS} at the most")
    return protocol


def _require_gang_fits(allocations: Allocations, protocol: Mapping[str, Any]) -> None:
    """Refuses a gang that is larger than the whole virtual cluster, as middlewares/v2/hived.js does. Other jobs are
    accepted and wait, also if the cluster is too full at the moment."""
    policy = build_job_policy(protocol)
    cluster = next((each for each in VIRTUAL_CLUSTERS if each.name == policy.virtual_cluster), None)
    if cluster is None or not policy.gang or _hived_scheduler(protocol).get("jobPriorityClass") == "oppo":
        return
    total, need = allocations.total(cluster), job_needs(policy)
    if lacking := total.lacks(need):
        what = ", ".join(f"{getattr(need, key)} {key}, exceeds maximum {getattr(total, key)} {key}" for key in lacking)
        raise invalid_protocol(f"Job requests {what} in VC {cluster.name}.")


def _hived_scheduler(protocol: Mapping[str, Any]) -> Mapping[str, Any]:
    return (protocol.get("extras") or {}).get("hivedScheduler") or {}


def require_allowed_policy(home: Path, person: Person, protocol: Mapping[str, Any]) -> JobPolicy:
    """The policy of a valid job. Refuses it if its user may not use what it asks for, as `put` of models/v2/job/k8s.js.
    A missing virtual cluster is refused like one that the user may not use."""
    policy = build_job_policy(protocol)
    if policy.virtual_cluster not in person.virtual_clusters:
        raise forbidden_user(f"User {person.name} is not allowed to do operation in {policy.virtual_cluster}")
    require_storages(home, protocol)
    return policy
