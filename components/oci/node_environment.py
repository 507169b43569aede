# SPDX-License-Identifier: Apache-2.0
"""The variables of a node that images read: those of OCI's own job runs, in the names that ADS gives them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from components.plan.launch import RolePart, expand_braces, plan_placeholders, run_folder
from components.plan.ports import ResolvedJob
from schemas.model import Run


def environments_of_nodes(
    job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
) -> Iterator[dict[str, str]]:
    """The variables of each node of a role. ADS numbers parameter servers separately, so they have no RANK."""
    framework, variables = job.framework, git_environment(job)
    if framework.ads is not None:
        values = plan_placeholders(job)
        start_arguments = list(framework.ads.start_arguments)
        for extra in framework.ads.start_options:
            start_arguments += extra.then if job.options.get(extra.when) else extra.otherwise
        replicas = {
            spec.mode: job.spec.roles[name].replicas for name, spec in framework.roles.items() if name in job.spec.roles
        }
        # ADS takes the script without the interpreter: `train.py`, not `python train.py`.
        words = [*part.words, *run.args]
        words = words[1:] if words and words[0] in ("python", "python3") else words
        of_ads = {
            "OCI__EPHEMERAL": "0",
            "OCI__CLUSTER_TYPE": framework.ads.cluster,
            "OCI__WORKER_COUNT": str(replicas.get("WORKER", 0)),
            "OCI__START_ARGS": " ".join(expand_braces(word, values) for word in start_arguments),
            "OCI__MODE": framework.roles[part.role].mode,
            **{name: expand_braces(text, values) for name, text in framework.ads.environment.items()},
            **variables,
            **({"OCI__PS_COUNT": str(replicas["PS"])} if "PS" in replicas else {}),
            # ADS's nodes write their addresses and a `stop` file here. Our provider gives each start a folder (0009).
            "OCI__WORK_DIR": f"{run_folder(names)}/{run.attempt}",
            "OCI__ENTRY_SCRIPT": words[0] if words else "",
            "OCI__ENTRY_SCRIPT_ARGS": shlex.join(words[1:]),
        }
        variables = {name: text for name, text in of_ads.items() if text}
    counted = job.framework.roles[part.role].mode != "PS"
    for rank in ranks:
        yield {**variables, **({"RANK": str(rank)} if counted else {})}


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
