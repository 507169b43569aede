# SPDX-License-Identifier: Apache-2.0
"""Job runs of OCI Data Science: makes requests for them, and parses responses. Pure, except for the SDK's models."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from components.oci.client.session import sdk_module
from components.platform.runs import LAUNCH_VARIABLE, TERMINAL, NodeRun, NodeSpec, RunSpec, Try, liked_by
from components.platform.values import Properties, Secret

RUN_TAG = "trainyard-run"
NODE_TAG = "trainyard-node"
RELEASED_TAG = "trainyard-run-released"
_OURS = frozenset({RUN_TAG, NODE_TAG, RELEASED_TAG})
MAIN_VARIABLE = "MAIN_JOB_RUN_OCID"
# Images built with ADS write their addresses and a `stop` file into this folder. Another start must not read them.
WORK_VARIABLE = "OCI__WORK_DIR"
# Our launcher reads it as the limit for retries of failures that no policy counts.
MAXIMUM_VARIABLE = "TRAINYARD_MAXIMUM_MINUTES"
# Our launcher tests before training what it says.
EXPECTS_VARIABLE = "TRAINYARD_EXPECTS"
_WORK = re.compile(r"/start-[0-9a-f]{12}$")
# The length of the OCID's end that names a start, the same as in launcher/retries.py.
_LETTERS = 12
# The states of node groups, in the words of job runs.
_GROUP_STATES = {"CREATING": "ACCEPTED", "ACTIVE": "IN_PROGRESS", "DELETING": "IN_PROGRESS"}


def data_science_models() -> Any:
    return sdk_module("data_science.models")


def job_run_tags(spec: RunSpec, node: NodeSpec | None) -> dict[str, str]:
    ours = {RUN_TAG: spec.fingerprint}
    if node is not None:
        ours[NODE_TAG] = f"{node.rank}/{node.role}/{node.name}"
    return {**spec.tags, **ours}


def node_of(run_tags: Mapping[str, str]) -> tuple[str, str, int]:
    """Name, role and rank of the node whose job run has these tags."""
    rank, _, rest = run_tags.get(NODE_TAG, "").partition("/")
    role, _, name = rest.partition("/")
    return name, role, int(rank) if rank.isdigit() else 0


def is_like(run_tags: Mapping[str, str]) -> str | None:
    """The run that a try repeats, or "" if its job had none. None if these are not the tags of a try."""
    return liked_by(run_tags.get(RUN_TAG, ""))


def job_runs_of_start(runs: Iterable[Any], fingerprint: str) -> list[Any]:
    """The job runs of one start."""
    return [run for run in runs if (run.freeform_tags or {}).get(RUN_TAG) == fingerprint]


def living_tries(runs: Iterable[Any]) -> list[Try]:
    """The tries among a job's runs that have not ended."""
    together: dict[str, list[Any]] = {}
    for run in runs:
        tags = run.freeform_tags or {}
        if is_like(tags) is not None and run.lifecycle_state not in TERMINAL:
            together.setdefault(tags[RUN_TAG], []).append(run)
    tries = []
    for own in together.values():
        tags = own[0].freeform_tags
        title = f"{tags.get('job', '')}/{tags.get('run', '')}"
        tries.append(Try(title, is_like(tags) or "", tuple(map(node_of_job_run, own))))
    return tries


def own_tags(run_tags: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (run_tags or {}).items() if key not in _OURS}


def start_of_job_run(run_id: str, variables: Mapping[str, str]) -> str:
    """The name of a job run's start. It is also the name of the folder where the nodes exchange addresses and write
    outputs."""
    return (variables.get(MAIN_VARIABLE) or run_id).rpartition(".")[2][-_LETTERS:]


def work_of(token: str) -> str:
    """The part of `OCI__WORK_DIR` that belongs to one start.

    It is made from the retry token: the main node's OCID is not known yet when that node is requested. OCI expects the
    same request each time it gets the same token.
    """
    return f"/start-{token[:12]}"


def work_in(run: Any) -> str:
    """The same part, read from an existing main node. Empty if that node has no such folder."""
    configuration = getattr(run, "job_configuration_override_details", None)
    variables = getattr(configuration, "environment_variables", None) or {}
    made = _WORK.search(variables.get(WORK_VARIABLE, ""))
    return made[0] if made else ""


def job_run_request(spec: RunSpec, node: NodeSpec | None, job: Any, work: str, main: str | None = None) -> Any:
    """CreateJobRunDetails for one node, or for all node groups if `node` is None. `main` is the main node's run."""
    of = data_science_models()
    group, log = spec.own.get("logGroup"), spec.own.get("log")
    details: dict[str, Any] = {
        "project_id": spec.own["project"],
        "compartment_id": spec.own["compartment"],
        "job_id": spec.own["job"],
        "display_name": display_name(spec, node),
        "freeform_tags": job_run_tags(spec, node),
        "job_log_configuration_override_details": of.JobLogConfigurationDetails(
            enable_logging=True, log_group_id=group, log_id=log, enable_auto_log_creation=log is None
        )
        if group
        else None,
    }
    if node is None:
        # An override replaces the whole configuration, so it repeats the job's network and startup order.
        of_job = job.job_node_configuration_details
        details["job_node_configuration_override_details"] = of.MultiNodeJobNodeConfigurationDetails(
            startup_order=getattr(of_job, "startup_order", None),
            maximum_runtime_in_minutes=spec.maximum_runtime_minutes,
            job_network_configuration=getattr(of_job, "job_network_configuration", None),
            job_node_group_configuration_details_list=[
                _node_group_override(spec, group, job, work) for group in spec.nodes
            ],
        )
    else:
        environment = {**_environment_of_node(spec, node, work), **({MAIN_VARIABLE: main} if main else {})}
        details["job_configuration_override_details"] = of.DefaultJobConfigurationDetails(
            environment_variables=environment or None,
            command_line_arguments=node.command_line,
            maximum_runtime_in_minutes=spec.maximum_runtime_minutes,
        )
        details["job_environment_configuration_override_details"] = _image_override(
            spec, job.job_environment_configuration_details
        )
        if reservation := spec.own.get("capacityReservation"):
            # Oracle's Pulumi provider cannot write it into the job. An override replaces the whole setting.
            of_job = job.job_infrastructure_configuration_details
            same = {field: getattr(of_job, field) for field in of_job.swagger_types}
            details["job_infrastructure_configuration_override_details"] = type(of_job)(
                **same | {"capacity_reservation_id": reservation}
            )
    return of.CreateJobRunDetails(**details)


def display_name(spec: RunSpec, node: NodeSpec | None) -> str:
    return spec.display_name if node is None or len(spec.nodes) == 1 else f"{spec.display_name}-{node.name}"


def _environment_of_node(spec: RunSpec, node: NodeSpec, work: str) -> dict[str, str]:
    """A node's variables. If ADS's folder is in a bucket, the start gets a folder of its own there."""
    place, minutes = node.environment.get(WORK_VARIABLE, ""), spec.maximum_runtime_minutes
    for_launcher = {MAXIMUM_VARIABLE: str(minutes or ""), EXPECTS_VARIABLE: spec.expects}
    return {
        **node.environment,
        **({WORK_VARIABLE: place.rstrip("/") + work} if place.startswith("oci://") else {}),
        **{name: text for name, text in for_launcher.items() if text and LAUNCH_VARIABLE in node.environment},
    }


def _node_group_override(spec: RunSpec, node: NodeSpec, job: Any, work: str) -> Any:
    of = data_science_models()
    of_job = {group.name: group for group in _node_groups(job.job_node_configuration_details)}
    declared = of_job.get(node.name)
    environment = declared.job_environment_configuration_details if declared else None
    return of.JobNodeGroupConfigurationDetails(
        name=node.name,
        replicas=node.own.get("replicas"),
        minimum_success_replicas=node.own.get("minimumSuccess"),
        job_configuration_details=of.DefaultJobConfigurationDetails(
            environment_variables=_environment_of_node(spec, node, work) or None,
            command_line_arguments=node.command_line,
        ),
        job_infrastructure_configuration_details=getattr(declared, "job_infrastructure_configuration_details", None),
        job_environment_configuration_details=_image_override(spec, environment) or environment,
    )


def _node_groups(configuration: Any) -> Sequence[Any]:
    return getattr(configuration, "job_node_group_configuration_details_list", None) or ()


def _image_override(spec: RunSpec, of_job: Any) -> Any:
    """The run's image. An override replaces the whole setting, so it repeats the job's command and entry point."""
    if not spec.image or getattr(of_job, "image", None) == spec.image:
        return None
    return data_science_models().OcirContainerJobEnvironmentConfigurationDetails(
        image=spec.image, cmd=getattr(of_job, "cmd", None), entrypoint=getattr(of_job, "entrypoint", None)
    )


def node_of_job_run(run: Any, name: str | None = None) -> NodeRun:
    """The node of a job run, or of its summary in a list."""
    return NodeRun(
        name=name or node_of(run.freeform_tags or {})[0] or run.display_name or run.id,
        id=run.id,
        state=run.lifecycle_state,
        details=run.lifecycle_details or "",
        started_at=_sortable_time(run.time_started),
        finished_at=_sortable_time(run.time_finished),
    )


def group_runs(run: Any, names: Sequence[str]) -> list[NodeRun]:
    """The node groups of one multi-node job run. They all end with the run."""
    whole = node_of_job_run(run, name="")
    groups = {group.name: group for group in getattr(run, "node_group_details_list", None) or ()}
    found = []
    for name in names or sorted(groups):
        state, details, group = whole.state, whole.details, groups.get(name)
        if group is not None and not whole.over:
            state = _GROUP_STATES.get(group.lifecycle_state, group.lifecycle_state)
        if group is not None and group.lifecycle_details:
            details = group.lifecycle_details
        found.append(NodeRun(name, whole.id, state, details, whole.started_at, whole.finished_at))
    return found


def inputs_of_job_runs(runs: Sequence[Any]) -> Properties:
    """The inputs that would make these job runs, for `import`. The main node's run comes first."""
    main = runs[0]
    groups = _node_groups(main.job_node_configuration_override_details)
    name = node_of(main.freeform_tags or {})[0]
    shown = str(main.display_name or main.id)
    image: str | None = getattr(main.job_environment_configuration_override_details, "image", None)
    nodes: list[Properties] = []
    for group in groups:
        sizes = {"replicas": group.replicas, "minimumSuccess": group.minimum_success_replicas}
        given = {key: value for key, value in sizes.items() if value is not None}
        nodes.append({"name": group.name, **given, **_described_configuration(group.job_configuration_details)})
    for run in () if groups else runs:
        node, role, rank = node_of(run.freeform_tags or {})
        of_role = {"role": role} if role else {}
        configuration = _described_configuration(run.job_configuration_override_details)
        nodes.append({"name": node or "main", "rank": rank, **of_role, **configuration})
    inputs: Properties = {
        "platform": "oci",
        "job": main.job_id,
        "project": main.project_id,
        "compartment": main.compartment_id,
        "displayName": shown.removesuffix(f"-{name}") if name and len(runs) > 1 else shown,
        "layout": "node-groups" if groups else "run-per-node",
        "nodes": nodes,
        "tags": own_tags(main.freeform_tags) or None,
        "image": image,
        "maximumRuntimeMinutes": getattr(
            main.job_node_configuration_override_details if groups else main.job_configuration_override_details,
            "maximum_runtime_in_minutes",
            None,
        ),
    }
    machines = main.job_infrastructure_configuration_override_details
    inputs["capacityReservation"] = getattr(machines, "capacity_reservation_id", None)
    logs = main.job_log_configuration_override_details
    if logs is not None and logs.enable_logging:
        inputs |= {"logGroup": logs.log_group_id, "log": logs.log_id}
    return {key: value for key, value in inputs.items() if value is not None}


def _described_configuration(configuration: Any) -> Properties:
    environment = dict(getattr(configuration, "environment_variables", None) or {})
    for ours in (MAIN_VARIABLE, MAXIMUM_VARIABLE, EXPECTS_VARIABLE):
        environment.pop(ours, None)
    if WORK_VARIABLE in environment:
        environment[WORK_VARIABLE] = _WORK.sub("", environment[WORK_VARIABLE])
    line = getattr(configuration, "command_line_arguments", None)
    # Which variables of a foreign run are secrets is not known, so all of them count as secrets.
    described: Properties = {"environment": {key: Secret(value) for key, value in environment.items()}}
    return {**described, "arguments": shlex.split(line)} if line else described


def _sortable_time(moment: Any) -> str | None:
    """Always with a fraction of a second, so that the texts sort by time."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z") if moment is not None else None
