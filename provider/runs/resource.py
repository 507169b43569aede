# SPDX-License-Identifier: Apache-2.0
"""`trainyard:index:Run`: one training run on any platform."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from components.platform.calls import Call, Cancelled, PartialFailureError, ProviderError
from components.platform.client import (
    NotInTimeError,
    RunPlatforms,
    Runs,
    reason_to_wait,
    unsuccessful_nodes,
    wait_for_end,
    wait_for_run,
)
from components.platform.inputs import (
    UNTIL,
    input_failures,
    missing_inputs,
    mutable_inputs,
    own_inputs,
    with_defaults,
    without_expects,
)
from components.platform.runs import (
    DELETED,
    NodeRun,
    RunSpec,
    have_ended,
    never_began,
    remembered_nodes,
    run_outputs,
    run_spec,
    wants_access,
)
from components.platform.values import Change, Diff, DiffRules, Properties, compare_inputs
from provider.base.resource import CheckedInputs, CreatedResource, LiveResource, ProviderResource, unknown_where_missing
from provider.runs.lost import LastLines, first_failure
from provider.runs.starting import JobTries, Turns, failure_mark, marks_of, reason_to_start, remedy_for_mark

_LAST_LINES = 20
# Words for states for which the platform gives no reason.
_REASONS = {"CANCELED": "somebody cancelled it", "DELETED": "somebody deleted its record"}
# Seconds between two starts of a run that has no access yet.
_FIRST_PAUSE = 2.0
_LONGEST_PAUSE = 60.0
_MINUTES_TO_END = 20.0
# The state key for the progress of the run that `up` has seen. Programs do not see it. `up` does not wait again for
# progress that was seen once: a new tag on a run that failed long after its start must not fail.
_REACHED = "__reached"
_WAITS = "has not reached its `until`: `up` waits again"
_OUTPUTS = ("state", "nodeRuns", "startedAt", "finishedAt")


class RunResource(ProviderResource):
    # The old run ends before the new one starts. Nodes cost money, and the old run may hold the last ones.
    delete_before_replace = True

    def __init__(self, platforms: Callable[[], RunPlatforms]) -> None:
        self._platforms = platforms
        self._tries = JobTries()
        self._turns = Turns()

    def check(self, call: Call, old: Properties, new: Properties) -> CheckedInputs:
        inputs = with_defaults(new)
        return CheckedInputs(inputs, tuple(input_failures(inputs)))

    def diff(self, call: Call, old: Properties, old_outputs: Properties, new: Properties) -> Diff:
        """Adds a change if the next `up` has work to do although no input changed.

        A failed run starts again, depending on its marks. A run that has not reached its `until` is waited for again.
        The engine remembers a failed `up`, but forgets it when the state is refreshed.
        """
        own, mutable = own_inputs(new.get("platform")), mutable_inputs(new.get("platform"))
        replacing = frozenset(key for key in {*old, *new} - mutable if not key.startswith("__"))
        diff = compare_inputs(
            without_expects(own.with_hidden(old, new) if own else old),
            without_expects(new),
            DiffRules(replace=replacing),
            self.delete_before_replace,
        )
        failed = {**old_outputs, **self._failed_meanwhile(call, diff, old, old_outputs, new)}
        again = reason_to_start(failed, new)
        if again or not (diff.changes or _has_reached(old_outputs, old["until"])):
            change = Change("update", replaces=bool(again), reason=again or _WAITS)
            diff = Diff({**diff.changes, "state": change}, diff.delete_before_replace)
        self._tries.announce(call, lambda: self._platforms().of(old), old, diff)
        return diff

    def _failed_meanwhile(
        self, call: Call, diff: Diff, old: Properties, old_outputs: Properties, new: Properties
    ) -> Properties:
        """The mark of a run that `up` should wait for, but that failed before it began since the last `up`.

        Waiting for it would only repeat the reason in its record, which may no longer apply.
        """
        recorded = _node_runs(old_outputs)
        if diff.replaces or not recorded or "startedAt" in old_outputs or _has_reached(old_outputs, new["until"]):
            return {}
        try:
            seen = self._platforms().of(old).observe(replace(call, patience=0.0), recorded)
        except ProviderError:
            return {}  # if the cloud still does not respond, `up` reports that
        # Without its record, it is not known whether a node began.
        whole = not any(node.state == DELETED for node in seen)
        now = run_outputs(old, seen)
        return failure_mark(now) if whole and never_began(now) else {}

    def preview(self, inputs: Properties, old_outputs: Properties | None) -> Properties:
        return unknown_where_missing({**(old_outputs or {}), **inputs}, _OUTPUTS)

    def create(self, call: Call, inputs: Properties) -> CreatedResource:
        for failure in missing_inputs(inputs):
            raise ProviderError(failure.reason)
        nodes = self._bring_up(call, inputs, [])
        return CreatedResource(nodes[0].id, _with_until_reached(run_outputs(inputs, nodes)))

    def update(
        self,
        call: Call,
        id: str,  # noqa: A002
        outputs_before: Properties,
        old: Properties,
        new: Properties,
    ) -> Properties:
        spec, runs = run_spec(call.urn, new), self._platforms().of(new)
        recorded = _node_runs(outputs_before)
        seen = runs.observe(call, recorded)
        if any(old.get(key) != new.get(key) for key in ("tags", "displayName")):
            # The fingerprint depends on the URN. A renamed run needs the new one, so that it is found again.
            runs.relabel(call, spec, [node for node in seen if node.state != DELETED])
        nodes = remembered_nodes(recorded, seen)
        if not _has_reached(outputs_before, new["until"]):
            nodes = self._bring_up(call, new, nodes)
        state = _with_former_times(run_outputs(new, nodes), outputs_before)
        return _with_until_reached({**state, **(marks_of(outputs_before) if state["state"] == "FAILED" else {})})

    def read(self, call: Call, id: str, outputs_before: Properties, inputs: Properties) -> LiveResource | None:  # noqa: A002
        runs = self._platforms().of(inputs, id)
        described = runs.describe(call, id)
        recorded = _node_runs(outputs_before)
        if described is None:
            return _without_records(call, runs, LiveResource(id, outputs_before, inputs), recorded)
        live_inputs, seen = described
        nodes = remembered_nodes(recorded, seen)
        if inputs:
            # A single node does not have the name that all nodes share.
            labels = ("tags", "displayName") if len(seen) == len(nodes) else ()
            live_inputs = {**inputs, **{key: live_inputs[key] for key in labels if key in inputs}}
        else:
            live_inputs = with_defaults(live_inputs)
        state = _with_former_times(run_outputs(live_inputs, nodes), outputs_before)
        if not inputs:
            # `import` does not wait for the run.
            state = _with_until_reached(state)
        reached = {_REACHED: outputs_before[_REACHED]} if _REACHED in outputs_before else {}
        return LiveResource(id, {**state, **reached, **marks_of(outputs_before)}, live_inputs)

    def delete(self, call: Call, id: str, outputs_before: Properties, inputs: Properties) -> None:  # noqa: A002
        runs = self._platforms().of(outputs_before, id)
        nodes = runs.observe(call, _node_runs(outputs_before))
        alive = [node for node in nodes if not node.over]
        try:
            self._tries.end(call, runs, outputs_before, _MINUTES_TO_END)
            runs.cancel(call, alive)
            if alive:
                call.report.info(f"run {outputs_before['displayName']}: cancelled; waiting until it has ended")
            wait_for_end(call, runs, nodes, _MINUTES_TO_END)
        except NotInTimeError as late:
            raise ProviderError(
                f"The run was cancelled but has not ended within {late.minutes:g} minutes: {_states_of_nodes(nodes)}.",
                "Run the same command again to wait longer.",
            ) from None
        runs.release(call, nodes)

    def _bring_up(self, call: Call, inputs: Properties, nodes: list[NodeRun]) -> list[NodeRun]:
        """Starts the missing nodes and waits for the run's `until`. After an error, the state keeps the nodes
        that exist."""
        spec, runs = run_spec(call.urn, inputs), self._platforms().of(inputs)
        # An existing resource must keep its id, so its run is not started again.
        own = own_inputs(spec.platform)
        waits = not nodes and (own is None or own.access_comes_late)
        patience = call.started + (spec.timeouts.access * 60 if waits else 0.0)
        try:
            pause = _FIRST_PAUSE
            while True:
                if not nodes:
                    with self._turns.turn(call, runs, spec, inputs) as begun:
                        patience += begun.started - call.started
                        call = begun
                        self._start(call, runs, spec, nodes)
                elif len(nodes) < len(spec.nodes):
                    self._start(call, runs, spec, nodes)
                wait_for_run(call, runs, spec, nodes)
                if not wants_access(run_outputs(inputs, nodes)) or time.monotonic() > patience:
                    break
                self._let_go(call, runs, spec, nodes, patience)
                call.stop.wait(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        except Exception as error:
            if not nodes:
                raise
            raise _failure_with_state(error, spec, inputs, nodes) from error
        if unsuccessful_nodes(nodes):
            raise self._failure(call, runs, spec, inputs, nodes)
        return nodes

    def _let_go(self, call: Call, runs: Runs, spec: RunSpec, nodes: list[NodeRun], patience: float) -> None:
        """Releases a run that never began for lack of access, so that it can be started again. Its records stay."""
        left = patience - time.monotonic()
        call.report.info(
            f"run {spec.display_name}: {unsuccessful_nodes(nodes)[0].details}; new access may not be in force yet, "
            f"trying again for up to {max(left, 0):.0f} s"
        )
        runs.cancel(call, [node for node in nodes if not node.over])
        wait_for_end(call, runs, nodes, _MINUTES_TO_END)
        runs.release(call, nodes)
        nodes.clear()

    def _start(self, call: Call, runs: Runs, spec: RunSpec, nodes: list[NodeRun]) -> None:
        started = list(nodes)
        nodes.clear()
        try:
            for node in runs.ensure(call, spec, started):
                nodes.append(node)
        finally:
            missing = [node for node in started if node.id not in {n.id for n in nodes}]
            nodes.extend(missing)

    def _failure(
        self, call: Call, runs: Runs, spec: RunSpec, inputs: Properties, nodes: list[NodeRun]
    ) -> PartialFailureError:
        lost, lines = unsuccessful_nodes(nodes)[0], LastLines(call, runs, _LAST_LINES)
        # Nodes that share one record share its end. Its reason names the node already.
        own = len({node.id for node in nodes}) == len(nodes)
        first = first_failure(lines.of(lost), nodes) if lost.started_at else None
        if first is not None and first.node is not None:
            # The platform may report another node first, which only ended because this one failed.
            lost = replace(runs.observe(call, [first.node])[0], state=lost.state)
        who = f"node {lost.name}: " if own else ""
        why = lost.details or _REASONS.get(lost.state, "no reason given")
        cause = [f"The run {spec.display_name} is {lost.state}: {who}{why}"]
        cause += [f"Its launchers say: {first.words}."] if first is not None else []
        alive = [node for node in nodes if not node.over]
        if alive:
            runs.cancel(call, alive)
            cause.append(f"Its other nodes were cancelled: {', '.join(node.name for node in alive)}.")
        kept = run_outputs(inputs, runs.observe(call, nodes))
        mark = failure_mark(kept)
        if not never_began(kept):
            cause += lines.quoted(lost, who)
        return PartialFailureError(nodes[0].id, {**kept, **mark}, "\n".join(cause), remedy_for_mark(mark))


def _failure_with_state(
    error: Exception, spec: RunSpec, inputs: Properties, nodes: list[NodeRun]
) -> PartialFailureError:
    run_id, state = nodes[0].id, run_outputs(inputs, nodes)
    if isinstance(error, NotInTimeError):
        cause = f"The run {spec.display_name} is not {spec.until} after {error}: {_states_of_nodes(nodes)}."
        return PartialFailureError(
            run_id, state, cause, "The run continues. Run the same command again to wait for it."
        )
    if isinstance(error, Cancelled):
        cause = f"Stopped waiting for the run {spec.display_name}: {_states_of_nodes(nodes)}."
        return PartialFailureError(run_id, state, cause, "The run continues. `up` waits again; `destroy` cancels it.")
    if isinstance(error, ProviderError):
        return PartialFailureError(run_id, state, error.cause, error.remedy)
    return PartialFailureError(
        run_id, state, f"{type(error).__name__}: {error}", "Run the same command again to continue."
    )


def _without_records(call: Call, runs: Runs, state: LiveResource, recorded: list[NodeRun]) -> LiveResource | None:
    """The state of a run whose records were deleted, or are too old to be kept. None starts it again.

    A run that had ended keeps its state. If it was alive, the status files in the bucket may show how it ended.
    """
    name = state.inputs.get("displayName") or state.id
    if not recorded:
        return None
    if not have_ended(recorded) and (how := runs.ending(call, state.id, state.inputs)):
        recorded = [replace(node, state=how) for node in recorded]
        state = replace(state, outputs={**state.outputs, **run_outputs(state.inputs, recorded)})
    if have_ended(recorded):
        call.report.info(
            f"run {name}: its records are gone; it stays {state.outputs.get('state')} and does not start again; "
            "a higher `attempt` starts it again."
        )
        return state
    call.report.warning(
        f"run {name}: its records are gone, and when it was last seen it had not ended "
        f"({_states_of_nodes(recorded)}): the next `up` starts it anew."
    )
    return None


def _with_former_times(state: Properties, before: Properties) -> Properties:
    """Keeps the times of a run that has ended: a node whose record is gone no longer reports them."""
    same = [node["id"] for node in state["nodeRuns"]] == [node["id"] for node in before.get("nodeRuns") or ()]
    times: Properties = {key: before[key] for key in ("startedAt", "finishedAt") if key in before}
    return {**state, **times} if same and "finishedAt" in times else state


def _with_until_reached(state: Properties) -> Properties:
    return {**state, _REACHED: state["until"]}


def _has_reached(state: Properties, until: str) -> bool:
    return _REACHED in state and UNTIL.index(until) <= UNTIL.index(state[_REACHED])


def _node_runs(state: Properties) -> list[NodeRun]:
    recorded: list[dict[str, Any]] = state.get("nodeRuns") or []
    return [NodeRun(node["name"], node["id"], node["state"], node.get("details") or "") for node in recorded]


def _states_of_nodes(nodes: list[NodeRun]) -> str:
    why = reason_to_wait(nodes)
    return ", ".join(f"{node.name} {node.state}" for node in nodes) + (f" ({why})" if why else "")
