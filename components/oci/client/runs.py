# SPDX-License-Identifier: Apache-2.0
"""Runs on OCI Data Science."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.oci.client import job_runs, logs
from components.oci.client import registry as images
from components.oci.client.calls import (
    ACCESS_CODES,
    StatusFolder,
    call_oci,
    is_missing_in_oci,
    list_oci_pages,
    make_once,
    oci_refusal,
    parse_bucket_folder,
    read_from_oci_if_exists,
    status_folder,
)
from components.oci.client.compartment_runs import CompartmentRuns
from components.oci.client.flow_logs import FlowWitness
from components.oci.client.session import Session, compartment_of_caller, session_of_caller
from components.oci.client.status import OciRunReader
from components.platform.calls import Call, ProviderError, call_of
from components.platform.client import FIRST_PATIENCE, LineMerger, RunClients, RunReader, Runs, Where
from components.platform.runs import (
    DELETED,
    TERMINAL,
    NodeRun,
    NodeSpec,
    RunSpec,
    Timeouts,
    Try,
    ending_of,
    ranks_of_node,
    read_launch_document,
    state_in,
)
from components.platform.status import ConnectionsSeen, NodeStatus, RunStatus, WantedRuns
from components.platform.values import Properties

if TYPE_CHECKING:
    from components.platform.tries import PlannedTry, ReadyTry


def ending_of_run(session: Session, call: Call, main: str, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """The result of a run. None if its objects do not show it."""
    return ending_of(
        [_state_of_rank(session, call, main, node, rank) for node in nodes for rank in ranks_of_node(node)]
    )


def _state_of_rank(session: Session, call: Call, main: str, node: Mapping[str, Any], rank: int) -> str | None:
    variables = node.get("environment") or {}
    place = parse_bucket_folder(status_folder(read_launch_document(variables), main, {}))
    if place is None:
        return None
    client = session.client("object_storage")
    try:
        status = read_from_oci_if_exists(
            call, "Read how the run ended", lambda: client.get_object(place.namespace, place.bucket, place.status(rank))
        )
    except ProviderError:
        # We may have no access to the bucket. Then the state is not known.
        return None
    return state_in(status.content) if status is not None else None


def is_job_run_id(run_id: str) -> bool:
    """Whether this is the id of a run on OCI."""
    return run_id.startswith("ocid1.datasciencejobrun.")


def runs_of_caller(where: Where) -> OciRuns:
    session = session_of_caller(where)
    compartment = compartment_of_caller(where)
    stated = (where.config.get("trainyard:network") or {}).get("flowLog")
    named = stated if isinstance(stated, Mapping) and {"group", "log"} <= stated.keys() else None
    call = replace(call_of("runs", where.tell), patience=FIRST_PATIENCE)
    witness = where.connections or FlowWitness(session, call, named, expected=bool(stated))
    return OciRuns(session, compartment, witness, where.cloud.region if where.cloud else None)


@dataclass
class OciRuns(CompartmentRuns, Runs):
    """`witness`: reports packets that the firewalls of a run's nodes dropped."""

    witness: Callable[[RunStatus], ConnectionsSeen | None] = lambda run: None
    region: str | None = None
    unknown_place = (
        "where are the runs? Name a stack, or use --local for the local cloud, or name a compartment with --place"
    )

    @property
    def place(self) -> str:
        return self.compartment

    @property
    def where(self) -> str:
        return f"the compartment {self.compartment}"

    def ensure(self, call: Call, spec: RunSpec, started: Sequence[NodeRun]) -> Iterator[NodeRun]:
        access = spec.timeouts.access
        job = call_oci(call, "Read the job", lambda: self._client.get_job(spec.own["job"]), access).data
        past = list(self.runs_of_job(call, spec.own["compartment"], spec.own["job"], access))
        made = job_runs.job_runs_of_start(past, spec.fingerprint)
        if made and not started and not call.anew:
            call.report.info(f"an interrupted attempt had made {len(made)} job run(s) already; going on from there")
        lives = sum((run.freeform_tags or {}).get(job_runs.RELEASED_TAG) == spec.fingerprint for run in past)
        if call.anew and not started:
            made, lives = [], lives + len(made)
        if spec.image and len(made) < (1 if spec.own["layout"] == "node-groups" else len(spec.nodes)):
            images.require_image(self.session, call, spec.image, spec.own["compartment"], access)
        if spec.own["layout"] == "node-groups":
            yield from self._ensure_groups(call, spec, job, made, lives)
        else:
            yield from self._ensure_nodes(
                call, spec, job, {job_runs.node_of_job_run(run).name: run for run in made}, lives
            )

    def _ensure_groups(self, call: Call, spec: RunSpec, job: Any, made: list[Any], lives: int) -> Iterator[NodeRun]:
        run = made[0] if made else self._create(call, spec, None, lives, _request_by_token(spec, None, job, None))
        yield from job_runs.group_runs(run, [node.name for node in spec.nodes])

    def _ensure_nodes(self, call: Call, spec: RunSpec, job: Any, made: dict[str, Any], lives: int) -> Iterator[NodeRun]:
        main: Any = None
        for node in spec.nodes:
            run = made.get(node.name)
            if run is None:
                main = main and self._whole(call, main)
                run = self._create(call, spec, node, lives, _request_by_token(spec, node, job, main))
            main = main or run
            yield job_runs.node_of_job_run(run, node.name)

    def _whole(self, call: Call, run: Any) -> Any:
        """A listed job run with all its fields: lists leave out some, such as its configuration."""
        return run if hasattr(run, "job_configuration_override_details") else self.get(call, run.id) or run

    def _create(
        self, call: Call, spec: RunSpec, node: NodeSpec | None, lives: int, request: Callable[[str], Any]
    ) -> Any:
        shown = job_runs.display_name(spec, node)
        call.report.status(f"starting {shown}")
        return make_once(
            call,
            f"Start the job run {shown}",
            f"{spec.fingerprint}/{node.name if node else ''}/{lives}",
            lambda token: self._client.create_job_run(request(token), opc_retry_token=token).data,
            spec.timeouts.access,
        )

    def observe(self, call: Call, nodes: Sequence[NodeRun]) -> list[NodeRun]:
        runs = {run_id: self.get(call, run_id) for run_id in dict.fromkeys(node.id for node in nodes)}
        observed = []
        for node in nodes:
            if (run := runs[node.id]) is None:
                observed.append(NodeRun(node.name, node.id, "DELETED", "the job run no longer exists"))
            elif len(runs) < len(nodes) or getattr(run, "node_group_details_list", None):
                observed.append(job_runs.group_runs(run, [node.name])[0])
            else:
                observed.append(job_runs.node_of_job_run(run, node.name))
        return observed

    def cancel(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for run_id in dict.fromkeys(node.id for node in nodes):
            call_oci(call, "Cancel the job run", partial(self._cancel, run_id))

    def _cancel(self, run_id: str) -> None:
        try:
            self._client.cancel_job_run(run_id)
        except Exception as error:
            # The run may have ended just before we cancelled it. Then there is nothing left to do.
            if not is_missing_in_oci(error) and getattr(error, "status", None) != 409:
                raise

    def release(self, call: Call, nodes: Sequence[NodeRun]) -> None:
        for run_id in dict.fromkeys(node.id for node in nodes):
            run = self.get(call, run_id)
            gone = run is None or run.lifecycle_state == DELETED
            tags = {} if gone else dict(run.freeform_tags or {})
            if job_runs.RUN_TAG in tags:
                tags[job_runs.RELEASED_TAG] = tags.pop(job_runs.RUN_TAG)
                self._tag(call, run_id, freeform_tags=tags)

    def relabel(self, call: Call, spec: RunSpec, nodes: Sequence[NodeRun]) -> None:
        by_name = {node.name: node for node in spec.nodes}
        for node in nodes:
            declared = by_name.get(node.name) if spec.own["layout"] == "run-per-node" else None
            name, tags = job_runs.display_name(spec, declared), job_runs.job_run_tags(spec, declared)
            self._tag(call, node.id, display_name=name, freeform_tags=tags)

    def _tag(self, call: Call, run_id: str, **fields: Any) -> None:
        details = job_runs.data_science_models().UpdateJobRunDetails(**fields)
        call_oci(call, "Update the job run", lambda: self._client.update_job_run(run_id, details))

    def reader(self, wanted: WantedRuns) -> RunReader:
        return OciRunReader(self, wanted, self.witness)

    def merger(self, call: Call, ranks: frozenset[int]) -> LineMerger:
        return logs.OciLogMerger(self.session, call, ranks=ranks)

    def place_of(self, run: RunStatus) -> StatusFolder | None:
        return parse_bucket_folder(run.folder)

    def prepare_try(self, call: Call, planned: PlannedTry, folder: Path) -> ReadyTry:
        from components.oci.client.tries import prepare_oci_try

        return prepare_oci_try(self, call, planned, folder)

    def access_lacked(self, planned: PlannedTry, error: ProviderError) -> str:
        from components.oci.client.tries import missing_statements

        cause = error.__cause__
        lacked = (getattr(cause, "status", None), getattr(cause, "code", None)) in ACCESS_CODES
        return missing_statements(self, planned) if lacked else ""

    def last_lines(self, call: Call, node: NodeRun, limit: int, patiently: bool = True) -> list[str]:
        run = self.get(call, node.id)
        if run is None:
            raise ProviderError("the job run no longer exists")
        return logs.last_lines_of_job_run(self.session, call, run, limit, patiently)

    def last_lines_of_nodes(
        self, call: Call, nodes: Sequence[NodeStatus], limit: int
    ) -> list[list[str] | ProviderError]:
        return logs.last_lines_of_nodes(self.session, call, nodes, limit)

    def started(self, call: Call, spec: RunSpec) -> list[NodeRun]:
        past = self.runs_of_job(call, spec.own["compartment"], spec.own["job"], 0)
        return [job_runs.node_of_job_run(run) for run in job_runs.job_runs_of_start(past, spec.fingerprint)]

    def tries(self, call: Call, inputs: Properties, patiently: bool) -> list[Try]:
        compartment, job = inputs["compartment"], inputs["job"]
        try:
            if patiently:
                return job_runs.living_tries(self.runs_of_job(call, compartment, job, 0))
            return job_runs.living_tries(list_oci_pages(partial(self._client.list_job_runs, compartment, job_id=job)))
        except Exception as error:
            refused = oci_refusal("List the job's runs", error)
            if is_missing_in_oci(error.__cause__ or error):
                # If somebody deleted the job, its runs are gone, too.
                return []
            raise refused from error

    def living(self, call: Call, inputs: Properties) -> Mapping[str, str]:
        runs = self.runs_of_job(call, inputs["compartment"], inputs["job"], Timeouts().access)
        tags = [run.freeform_tags or {} for run in runs if run.lifecycle_state not in TERMINAL]
        return {own[job_runs.RUN_TAG]: own.get("run", "") for own in tags if job_runs.RUN_TAG in own}

    def ending(self, call: Call, run_id: str, inputs: Properties) -> str | None:
        return ending_of_run(self.session, call, run_id, inputs.get("nodes") or ())


def _request_by_token(spec: RunSpec, node: NodeSpec | None, job: Any, main: Any) -> Callable[[str], Any]:
    """The request for a retry token. Further nodes get the same start folder as the main node."""
    if main is None:
        return lambda token: job_runs.job_run_request(spec, node, job, job_runs.work_of(token))
    return lambda _: job_runs.job_run_request(spec, node, job, job_runs.work_in(main), main.id)


RUN_CLIENTS = RunClients(is_job_run_id, lambda config: OciRuns(Session.of(config)), runs_of_caller)
