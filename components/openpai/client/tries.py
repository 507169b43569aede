# SPDX-License-Identifier: Apache-2.0
"""Tries on OpenPAI: jobs of their own, beside those of the stack's runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.openpai.client.caller import session_of_caller
from components.openpai.client.jobs import Job, described_inputs
from components.openpai.client.merging import differences, merged
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.written import without_forms
from components.openpai.plan import OpenPaiJobPlan, OpenPaiPlan, openpai_job, openpai_plan
from components.openpai.run_inputs import read_files, run_inputs
from components.plan.model import RunPlan
from components.platform.calls import Call, call_of
from components.platform.run_platform import liked_by
from components.platform.runs import NodeRun, RunSpec
from components.platform.starting_tries import spec_of_try
from components.platform.tries import PlannedTry, ReadyTry, TryError, TryQuestion
from components.platform.values import Properties


@dataclass
class OpenPaiTries:
    """`components.platform.tries.TryPlatform`."""

    runs: OpenPaiRunPlatform
    call: Call
    question: TryQuestion
    # A cluster is no region.
    region: str | None = None

    def prepare(self, planned: PlannedTry) -> ReadyTry:
        plan, job = openpai_plan(planned.plan), openpai_job(planned.job)
        own = self._inputs(plan, job, planned.run)
        _refuse_secrets(planned, own["protocol"])
        deployed = self._deployed(planned)
        if deployed is None or planned.like is None:
            return ReadyTry(planned, {**own, "until": "accepted"}, ())
        like = self._inputs(plan, job, planned.like)
        before = described_inputs(deployed, self.runs.session.uri)
        _refuse_secrets(planned, before["protocol"])
        protocol = merged(before["protocol"], like["protocol"], own["protocol"])
        inputs = {
            **before, "protocol": protocol, "nodes": own["nodes"], "displayName": own["displayName"],
            "tags": own["tags"], "attempt": 1, "until": "accepted",
        }  # fmt: skip
        kept = differences(without_forms(before["protocol"]), without_forms(like["protocol"]))
        return ReadyTry(planned, inputs, tuple(dict.fromkeys(kept)))

    def start(self, ready: ReadyTry) -> Sequence[NodeRun]:
        spec, made = spec_of_try(ready), list[NodeRun]()
        try:
            made.extend(self.runs.ensure(self.call, spec, ()))
        except BaseException:
            self._end(spec)
            raise
        return made

    def _end(self, spec: RunSpec) -> None:
        """Ends what was submitted: nobody would know of it, and it would cost money."""
        for job in self.runs.living(self.call, str(spec.own["cluster"]["user"])):
            if job.fingerprint == spec.fingerprint:
                self.runs.cancel(self.call, [NodeRun(str(node["name"]), job.run_id(node), "") for node in job.nodes])

    def _inputs(self, plan: OpenPaiPlan, job: OpenPaiJobPlan, run: RunPlan) -> Properties:
        """What `up` would start the run with, on the cluster that is asked."""
        try:
            files = read_files(plan, job, self.question.judged.folder)
        except (OSError, UnicodeError) as error:
            raise TryError(f"a file beside the stack file cannot be read: {error}") from error
        inputs = run_inputs(plan, job, run, files, lambda text: text)
        session = self.runs.session
        cluster = {**inputs["cluster"], "uri": session.uri, "user": session.user or inputs["cluster"]["user"]}
        return {key: value for key, value in {**inputs, "cluster": cluster}.items() if key != "token"}

    def _deployed(self, planned: PlannedTry) -> Job | None:
        """The newest job of the run that the try is like. None if the job has no runs in the stack file."""
        stack, job, name = planned.plan.stack, planned.job.name, planned.run.name
        past = self.runs.runs_of(self.call, self.runs.session.user)
        own = [one for one in past if (one.tags.get("stack"), one.tags.get("job")) == (stack, job)]
        if any(one.tags.get("run") == name for one in own):
            # It would share checkpoints and the line in `trainyard runs`.
            raise TryError(f"there was a try {planned.title} already: give this one another --name, or none")
        if planned.like is None:
            return None
        like = planned.like.name
        found = (one for one in own if one.tags.get("run") == like and liked_by(one.fingerprint) is None)
        newest = next(found, None)
        if newest is None:
            raise TryError(
                f"the run {job}/{like} is not deployed on {self.runs.session.uri}: `up` of the stack starts it first"
            )
        return newest


def _refuse_secrets(planned: PlannedTry, protocol: Mapping[str, Any]) -> None:
    """Nobody can read them here: the file has them sealed, and the cluster masks them."""
    secrets = protocol.get("secrets")
    if secrets:
        named = f" ({', '.join(sorted(secrets))})" if isinstance(secrets, Mapping) else ""
        raise TryError(
            f"the job {planned.job.name} has secrets{named}, which a try cannot bring: "
            "add a run to the stack file, and `up` starts it"
        )


def make(question: TryQuestion) -> OpenPaiTries:
    folder = question.judged.folder
    session = session_of_caller(question.config, question.cloud, question.profile, question.place, folder)
    return OpenPaiTries(OpenPaiRunPlatform(session), call_of("run", question.tell), question)
