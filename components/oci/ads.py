# SPDX-License-Identifier: Apache-2.0
"""The environment by which images built with ADS know their part: `OCI__…`, and `RANK`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from components.plan.launch import Part, expand_braces, folder_of, placeholders
from components.plan.resolved import ResolvedJob
from schemas.model import Run


def environments(
    job: ResolvedJob, part: Part, names: Mapping[str, str], run: Run, ranks: range
) -> Iterator[dict[str, str]]:
    """What each node of a role is told. ADS counts parameter servers apart."""
    told = _of_run(_of_role(job, part.role), part, names, run) or git_environment(job)
    counted = job.framework.roles[part.role].mode != "PS"
    for rank in ranks:
        yield {**told, **({"RANK": str(rank)} if counted else {})}


def _of_run(of_role: Mapping[str, str], part: Part, names: Mapping[str, str], run: Run) -> dict[str, str]:
    if not of_role:
        return {}
    words = _without_interpreter((*part.words, *run.args))
    told = {
        **of_role,
        # Here ADS's nodes leave their addresses and a `stop`. Our provider makes it a place of each start (0009).
        "OCI__WORK_DIR": f"{folder_of(names)}/{run.attempt}",
        "OCI__ENTRY_SCRIPT": words[0] if words else "",
        "OCI__ENTRY_SCRIPT_ARGS": shlex.join(words[1:]),
    }
    return {name: text for name, text in told.items() if text}


def _of_role(job: ResolvedJob, role: str) -> dict[str, str]:
    framework = job.framework
    if framework.ads is None:
        return {}
    values = placeholders(job)
    replicas = {
        spec.mode: job.spec.roles[name].replicas for name, spec in framework.roles.items() if name in job.spec.roles
    }
    told = {
        "OCI__EPHEMERAL": "0",
        "OCI__CLUSTER_TYPE": framework.ads.cluster,
        "OCI__WORKER_COUNT": str(replicas.get("WORKER", 0)),
        "OCI__START_ARGS": " ".join(expand_braces(word, values) for word in _start_arguments(job)),
        "OCI__MODE": framework.roles[role].mode,
        **{name: expand_braces(text, values) for name, text in framework.ads.environment.items()},
        **git_environment(job),
    }
    if "PS" in replicas:
        told["OCI__PS_COUNT"] = str(replicas["PS"])
    return told


def _start_arguments(job: ResolvedJob) -> Iterator[str]:
    ads = job.framework.ads
    if ads is not None:
        yield from ads.start_arguments
        for extra in ads.start_options:
            yield from extra.then if job.options.get(extra.when) else extra.otherwise


def _without_interpreter(words: Sequence[str]) -> list[str]:
    """ADS names the script alone: `python train.py` is `train.py`."""
    return list(words[1:] if words and words[0] in ("python", "python3") else words)


def git_environment(job: ResolvedJob) -> dict[str, str]:
    """The repository of the code. Our launcher reads it too, whatever framework a job has."""
    git = job.spec.code.git if job.spec.code else None
    if git is None:
        return {}
    named = {
        "OCI__RUNTIME_TYPE": "git",
        "OCI__RUNTIME_URI": git.url,
        "OCI__RUNTIME_GIT_BRANCH": git.branch,
        "OCI__RUNTIME_GIT_COMMIT": git.commit,
        "OCI__RUNTIME_GIT_SECRET_ID": git.secret,
    }
    return {name: text for name, text in named.items() if text}
