# SPDX-License-Identifier: Apache-2.0
"""Runs of OCI Data Science, as `trainyard runs` asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from components.oci.client.caller import compartment_of_caller, session_of_caller
from components.oci.client.flows import FlowWitness
from components.oci.client.lines import LogMerger
from components.oci.client.runs import OciRunPlatform
from components.oci.client.session import Session
from components.oci.client.status import Looker
from components.oci.client.status_place import StatusFolder, parse_folder
from components.platform.calls import Call, call_of
from components.platform.look import FIRST_PATIENCE, Look, Question, UnknownPlaceError
from components.platform.status import RunStatus


class OciLook(Look[Looker]):
    """`components.platform.look.RunLook`."""

    @property
    def where(self) -> str:
        return f"the compartment {self.looker.compartment}"

    def cancel(self, run: RunStatus) -> None:
        alive = [node.run for node in run.nodes if not node.run.over]
        OciRunPlatform(self.looker.session).cancel(self.looker.call, alive)

    def merger(self, ranks: frozenset[int]) -> LogMerger:
        return LogMerger(self.looker.session, self.looker.call, ranks)

    def place_of(self, run: RunStatus) -> StatusFolder | None:
        return parse_folder(run.folder)


def make(question: Question) -> OciLook:
    config, cloud = question.config, question.cloud
    session = session_of_caller(config, cloud, question.profile)
    compartment = compartment_of_caller(config, cloud, question.place)
    if not compartment:
        raise UnknownPlaceError(
            "where are the runs? Name a stack, or use --local for the local cloud, or name a compartment with --place"
        )
    call = call_of("runs", question.tell)
    looker = Looker(session, replace(call, patience=FIRST_PATIENCE), compartment, question.wanted)
    looker.witness = question.connections or _flow_witness(config, session, looker.call)
    return OciLook(looker, call.patience)


def _flow_witness(config: Mapping[str, Any], session: Session, call: Call) -> FlowWitness:
    stated = (config.get("trainyard:network") or {}).get("flowLog")
    named = stated if isinstance(stated, Mapping) and {"group", "log"} <= stated.keys() else None
    return FlowWitness(session, call, named, expected=bool(stated))
