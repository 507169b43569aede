# SPDX-License-Identifier: Apache-2.0
"""Changes a team's stack file so that the local cloud can use it, with stand-ins for what exists elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from components.plan.model import Plan
from components.platform.local import Config, LocalFile
from schemas.name_suggestions import count_noun
from schemas.scalars import secrets_in
from trainyard.local.environments import why_untrained

_JOBS, _ACCEPTED = "trainyard:jobs", "accepted"


def localize_config(
    written: Mapping[str, Any],
    plan: Plan,
    stand_in: Callable[[LocalFile], None],
    stacks: Path,
    keeps_secrets: bool = False,
) -> LocalFile:
    """The configuration of a stack file for this cloud. `stand_in` makes the stand-ins.

    `keeps_secrets`: local stacks can decrypt the file's secrets, so they stay.
    """
    made = LocalFile(deepcopy(dict(written)))
    stand_in(made)
    if uses := made.config.get("trainyard:uses"):
        # A file backend calls every organization `organization`.
        uses["stack"] = f"organization/trainyard/{uses['stack'].rpartition('/')[2]}"
    if not keeps_secrets:
        _replace_secrets(made)
    has_access = made.has_access or plan.access.create or "access" in plan.taken
    elsewhere = "" if has_access else "its access is made elsewhere (`trainyard rehearse` makes stand-ins for that too)"
    for name, job in plan.jobs.items():
        reason = why_untrained(job, stacks) or elsewhere
        if not reason or not job.runs:
            continue
        runs = made.config["trainyard:jobs"][name]["runs"]
        for key in runs:
            runs[key] = {**(runs[key] or {}), "until": "accepted"}
        made.remarks.append(
            f"job {name} is not trained on this machine, so `up` waits only until its runs are accepted: {reason}"
        )
    return made


def _replace_secrets(made: LocalFile) -> None:
    for path, _ in list(secrets_in(made.config)):
        *parents, last = path
        holder: Any = made.config
        for step in parents:
            holder = holder[step]
        stand_in = f"stand-in-{hashlib.sha256(repr(path).encode()).hexdigest()[:16]}"
        steps = (f"[{step}]" if isinstance(step, int) else f'["{step}"]' for step in path[1:])
        made.secrets[f"{path[0]}{''.join(steps)}"] = stand_in
        # The key must exist before Pulumi can set it, and a list must keep its order.
        holder[last] = stand_in
    if made.secrets:
        made.remarks.append(
            f"{count_noun(len(made.secrets), 'secret')} of the file replaced by stand-ins: "
            "only the stack's own key can decrypt them"
        )


def waited_for_again(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Remarks on jobs whose runs `up` did not wait for last time. Without them, the changed `until` in the diff would
    be a surprise."""
    jobs, unawaited = now.get(_JOBS) or {}, before.get(_JOBS) or {}
    again = [
        name
        for name, job in jobs.items()
        for key, run in (job.get("runs") or {}).items()
        if _until_of_run(((unawaited.get(name) or {}).get("runs") or {}).get(key)) == _ACCEPTED != _until_of_run(run)
    ]
    words = "`up` waits for its runs from now on, which the diff shows as a changed `until`"
    return [f"job {name}: {words}" for name in dict.fromkeys(again)]


def _until_of_run(run: Mapping[str, Any] | None) -> str:
    return str((run or {}).get("until", ""))


def holds_secrets(config: Config) -> bool:
    return any(secrets_in(config))
