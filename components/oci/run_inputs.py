# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run resource. `pulumi up` starts runs with them, and so does a rehearsal."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from components.oci.plan import OciPlan
from components.plan.launch import RolePart, expand_braces, placeholders, run_folder
from components.plan.model import JobPlan, NodePlan, RunPlan
from components.plan.ports import ResolvedJob
from schemas.model import EnvValue, Run

LAUNCH = "launch"
# The most characters that OCI accepts as a tag's value.
LONGEST_TAG = 256


class Filler(Protocol):
    """Fills in the references that a plan leaves open: with values, or with Pulumi's outputs."""

    def environment(self, values: Mapping[str, EnvValue]) -> Mapping[str, Any]: ...

    def document(self, value: Mapping[str, Any]) -> Any: ...


@dataclass(frozen=True)
class Where:
    """The place of a run: OCIDs, or Pulumi's outputs that become OCIDs."""

    job: Any
    project: Any
    image: Any
    log_group: Any
    log: Any


def job_tags(plan: OciPlan, job: JobPlan) -> dict[str, str]:
    return {**plan.tags, "job": job.name}


def launch_tags(job: JobPlan) -> dict[str, str]:
    """A tag for a job without runs: how many nodes a run of it has, and their ports, as in `nodes=4

    ports=29400,29500-29563`. People start its runs by other means, and policy packs see only the job.
    """
    if job.runs:
        return {}
    ports = dict.fromkeys("all" if one is None else str(one) for role in job.roles for one in role.ports.values())
    tag = f"nodes={job.nodes} ports={','.join(ports)}"
    return {LAUNCH: tag} if len(tag) <= LONGEST_TAG else {}


def run_inputs(plan: OciPlan, job: JobPlan, run: RunPlan, where: Where, filler: Filler) -> dict[str, Any]:
    reservation = plan.jobs[job.name].capacity_reservation
    return {
        "platform": "oci",
        "job": where.job,
        "project": where.project,
        "compartment": plan.compartment,
        "displayName": run.display_name,
        "tags": {**job_tags(plan, job), "run": run.name},
        "layout": job.layout,
        "nodes": [_node(job, node, filler) for node in run.nodes],
        "image": where.image,
        "maximumRuntimeMinutes": job.maximum_runtime_minutes,
        "logGroup": where.log_group,
        "log": where.log,
        # Earlier releases had no such input. It is left out if it is empty, so their runs do not start again.
        **({"capacityReservation": reservation} if reservation else {}),
        **run.turn_inputs,
        "until": run.until,
        "attempt": run.attempt,
    }


def _node(job: JobPlan, node: NodePlan, filler: Filler) -> dict[str, Any]:
    environment = {**filler.environment(node.environment), "TRAINYARD_LAUNCH": filler.document(node.launch)}
    described: dict[str, Any] = {"name": node.name, "role": node.role, "rank": node.rank, "environment": environment}
    if job.layout == "node-groups":
        described |= {"replicas": node.replicas, "minimumSuccess": node.minimum_success}
    return described


def environments(
    job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
) -> Iterator[dict[str, str]]:
    """The variables of each node of a role. ADS numbers parameter servers separately, so they have no RANK."""
    variables = _of_run(_of_role(job, part.role), part, names, run) or git_environment(job)
    counted = job.framework.roles[part.role].mode != "PS"
    for rank in ranks:
        yield {**variables, **({"RANK": str(rank)} if counted else {})}


def _of_run(of_role: Mapping[str, str], part: RolePart, names: Mapping[str, str], run: Run) -> dict[str, str]:
    if not of_role:
        return {}
    words = _without_interpreter((*part.words, *run.args))
    variables = {
        **of_role,
        # ADS's nodes write their addresses and a `stop` file here. Our provider gives each start its own folder (0009).
        "OCI__WORK_DIR": f"{run_folder(names)}/{run.attempt}",
        "OCI__ENTRY_SCRIPT": words[0] if words else "",
        "OCI__ENTRY_SCRIPT_ARGS": shlex.join(words[1:]),
    }
    return {name: text for name, text in variables.items() if text}


def _of_role(job: ResolvedJob, role: str) -> dict[str, str]:
    framework = job.framework
    if framework.ads is None:
        return {}
    values = placeholders(job)
    replicas = {
        spec.mode: job.spec.roles[name].replicas for name, spec in framework.roles.items() if name in job.spec.roles
    }
    variables = {
        "OCI__EPHEMERAL": "0",
        "OCI__CLUSTER_TYPE": framework.ads.cluster,
        "OCI__WORKER_COUNT": str(replicas.get("WORKER", 0)),
        "OCI__START_ARGS": " ".join(expand_braces(word, values) for word in _start_arguments(job)),
        "OCI__MODE": framework.roles[role].mode,
        **{name: expand_braces(text, values) for name, text in framework.ads.environment.items()},
        **git_environment(job),
    }
    if "PS" in replicas:
        variables["OCI__PS_COUNT"] = str(replicas["PS"])
    return variables


def _start_arguments(job: ResolvedJob) -> Iterator[str]:
    ads = job.framework.ads
    if ads is not None:
        yield from ads.start_arguments
        for extra in ads.start_options:
            yield from extra.then if job.options.get(extra.when) else extra.otherwise


def _without_interpreter(words: Sequence[str]) -> list[str]:
    """ADS takes the script without the interpreter: `train.py`, not `python train.py`."""
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
