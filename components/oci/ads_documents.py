# SPDX-License-Identifier: Apache-2.0
"""A run as a distributed job of ADS, for `ads opctl run --file`. What ADS cannot say is named."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.tables import table
from components.oci.plan import OciJobPlan, OciPlan, registry_host
from components.plan.documents import ImpossibleDocumentError
from components.plan.model import NodePlan, RolePlan, RunPlan
from components.platform.owned import OUR_TAGS
from schemas.model import EnvValue
from schemas.name_suggestions import quoted_list
from schemas.unfilled_values import PLACEHOLDER

# How ADS calls roles, by their modes. The first has no number of nodes: there is one.
_ROLES = {"MAIN": "main", "WORKER": "worker", "PS": "ps"}
_GIT = {
    "OCI__RUNTIME_URI": "uri", "OCI__RUNTIME_GIT_BRANCH": "branch", "OCI__RUNTIME_GIT_COMMIT": "commit",
    "OCI__RUNTIME_GIT_SECRET_ID": "gitSecretId",
}  # fmt: skip


def ads_document_of_run(
    plan: OciPlan, job: OciJobPlan, run: RunPlan, folder: Path
) -> tuple[Mapping[str, Any], Sequence[str]]:
    """The document, and notes on what it lacks. Raises ImpossibleDocumentError for a run that ADS cannot start."""
    main = run.nodes[0].environment
    if "OCI__CLUSTER_TYPE" not in main or job.by_shell:
        raise ImpossibleDocumentError(f"ADS has no cluster that starts the job {job.name} ({job.framework})")
    if job.layout == "node-groups":
        raise ImpossibleDocumentError(f"ADS starts a run for each node, and {job.name} has the layout `node-groups`")
    notes = [*_lacking_keys(job), *_other_commands(run), *_unfilled_places(plan, run)]
    given = [_own_variables(node) for node in run.nodes]
    shared = {name: value for name, value in given[0].items() if all(of.get(name) == value for of in given)}
    cluster: dict[str, Any] = {
        "image": _image_reference(plan, job),
        "workDir": f"oci://{plan.bucket.name}@{PLACEHOLDER}",
        "name": job.name,
        **({"config": {"env": _environment_list(shared)}} if shared else {}),
        **{_ROLES[role.mode]: _cluster_role(role, run.nodes, shared) for role in job.roles},
    }
    runtime = {"entryPoint": main["OCI__ENTRY_SCRIPT"], **_script_arguments(main)}
    git = {key: main[name] for name, key in _GIT.items() if name in main}
    document = {
        "kind": "distributed",
        "apiVersion": "v1.0",
        "spec": {
            "infrastructure": {
                "kind": "infrastructure", "type": "dataScienceJob", "apiVersion": "v1.0",
                "spec": _job_infrastructure(plan, job),
            },
            "cluster": {"kind": main["OCI__CLUSTER_TYPE"], "apiVersion": "v1.0", "spec": cluster},
            "runtime": {
                "kind": "python", "apiVersion": "v1.0", **({"type": "git"} if git else {}), "spec": {**runtime, **git},
            },
        },
    }  # fmt: skip
    return document, notes


def _job_infrastructure(plan: OciPlan, job: OciJobPlan) -> dict[str, Any]:
    logs = plan.logs if plan.logs.enabled else None
    size = {"ocpus": job.shape.ocpus, "memoryInGBs": job.shape.memory_gb}
    named = {
        "projectId": plan.project.project or f"ocid1.datascienceproject.oc1..{PLACEHOLDER}",
        "compartmentId": plan.compartment,
        "displayName": job.display_name,
        "logGroupId": logs and (logs.group or f"ocid1.loggroup.oc1..{PLACEHOLDER}"),
        "logId": logs and logs.log,
        "subnetId": plan.network.subnet or f"ocid1.subnet.oc1..{PLACEHOLDER}",
        "shapeName": job.shape.name,
        "shapeConfigDetails": size if job.shape.ocpus else None,
        "blockStorageSize": job.block_storage_gb or None,
        # Those of trainyard would say that it made the job.
        "freeformTags": {name: text for name, text in plan.tags.items() if name not in OUR_TAGS} or None,
    }
    return {key: value for key, value in named.items() if value is not None}


def _cluster_role(role: RolePlan, nodes: Sequence[NodePlan], shared: Mapping[str, EnvValue]) -> dict[str, Any]:
    own = next(node for node in nodes if node.role == role.called)
    config: dict[str, Any] = {}
    if arguments := own.environment.get("OCI__START_ARGS"):
        # The variable has the ports of workers. ADS gives the main process options of its own.
        config["startOptions"] = [arguments, *_count_options(own)] if role.mode == "WORKER" else [*_port_options(role)]
    if alone := {name: value for name, value in _own_variables(own).items() if name not in shared}:
        config["env"] = _environment_list(alone)
    return {"name": role.name, "replicas": role.replicas, **({"config": config} if config else {})}


def _port_options(role: RolePlan) -> Iterator[str]:
    for option, row in table("bring/ads")["start_options"].items():
        if (port := role.ports.get(row.get("port", ""))) is not None:
            yield f"{option} {port}"


def _count_options(node: NodePlan) -> Iterator[str]:
    """The job's numbers of threads and processes, where they are not those that ADS starts."""
    left = {name: number for name, number in node.launch["options"].items() if type(number) is int and number != 1}
    for option, row in table("bring/ads")["start_options"].items():
        if "value" not in row and row.get("option") in left:
            yield f"{option} {left.pop(row['option'])}"


def _own_variables(node: NodePlan) -> dict[str, EnvValue]:
    """The team's variables, without secrets."""
    reserved = (*table("bring/ads")["reserved"]["prefixes"], "RANK")
    return {
        name: value
        for name, value in node.environment.items()
        if isinstance(value, str) and not name.startswith(reserved)
    }


def _environment_list(values: Mapping[str, EnvValue]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _script_arguments(main: Mapping[str, EnvValue]) -> dict[str, Any]:
    words = shlex.split(str(main.get("OCI__ENTRY_SCRIPT_ARGS", "")))
    return {"args": words} if words else {}


def _image_reference(plan: OciPlan, job: OciJobPlan) -> str:
    return job.image.replace("${registry}", f"{registry_host(plan.region)}/{PLACEHOLDER}/{plan.registry.repository}")


def _lacking_keys(job: OciJobPlan) -> Iterator[str]:
    """What ADS has no key for."""
    lacking = {
        "inputs": job.inputs, "packages": job.packages, "keep": job.keep, "computeTarget": job.compute_target,
        "capacityReservation": job.capacity_reservation,
    }  # fmt: skip
    keys = [*(key for key, value in lacking.items() if value), "maximumRuntimeMinutes", "stallMinutes", "retry"]
    yield f"ADS has no {quoted_list(keys)}: they are left out"
    if job.code and not job.code.git:
        yield "ADS puts a folder of code into the image: build it there (`ads opctl distributed-training build-image`)"


def _other_commands(run: RunPlan) -> Iterator[str]:
    scripts = {
        node.role: (node.environment.get("OCI__ENTRY_SCRIPT"), node.environment.get("OCI__ENTRY_SCRIPT_ARGS"))
        for node in run.nodes
    }
    first = next(iter(scripts.values()))
    if others := [role for role, script in scripts.items() if script[0] and script != first]:
        yield f"the command of {quoted_list(others)} is left out: ADS starts the same script on every node"


def _unfilled_places(plan: OciPlan, run: RunPlan) -> Iterator[str]:
    secrets = sorted(
        {name for node in run.nodes for name, value in node.environment.items() if not isinstance(value, str)}
    )
    if secrets:
        yield f"{quoted_list(secrets)} left out: ADS would show secrets in the job. Read them from Vault in the script"
    made = {"project": plan.project.project, "subnet": plan.network.subnet, "log group": plan.logs.group}
    unknown = [name for name, known in made.items() if not known and (name != "log group" or plan.logs.enabled)]
    yield f"`{PLACEHOLDER}` stands for the namespace of the tenancy" + (
        f", and for the OCID of the {' and the '.join(unknown)}, which `pulumi up` makes" if unknown else ""
    )
