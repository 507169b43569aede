# SPDX-License-Identifier: Apache-2.0
"""Runs of OCI Data Science, as `trainyard runs` asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from localcloud import admin
from localcloud.control import Cloud, CloudError
from provider.base.asking import call_of
from provider.oci import status_place
from provider.oci.caller import compartment_of_caller, session_of_caller
from provider.oci.platform import OciRunPlatform
from provider.runs.progress import ProgressPoint
from runstatus.dropped import Witness
from runstatus.oci.logs import LogMerger
from runstatus.oci.looker import Looker
from runstatus.platform import Question, UnknownPlaceError
from runstatus.seen import MachineSeen, RunStatus

# Somebody waits for the first look. A cloud that has answered once may fall silent for a while.
FIRST_PATIENCE = 10.0


@dataclass
class OciLook:
    """`runstatus.platform.RunLook`."""

    looker: Looker
    # Of all looks but the first.
    patience: float
    cloud: Cloud | None = None
    _merged: dict[frozenset[int], LogMerger] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"the compartment {self.looker.compartment}"

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        runs = self.looker.look(deeply, history)
        self.looker.call = replace(self.looker.call, patience=self.patience)
        return runs

    def machines(self) -> Sequence[MachineSeen]:
        return ()

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        merged = self._merged.setdefault(ranks, LogMerger(self.looker.session, self.looker.call, ranks))
        return merged.new(runs)

    def recall(self, run: RunStatus) -> Mapping[int, Sequence[ProgressPoint]]:
        place = status_place.parse_folder(run.folder)
        if self.cloud is None or place is None:
            return {}
        try:
            return admin.read_progress(self.cloud, place.bucket, place.prefix)
        except CloudError:  # progress is a help, states are told without it
            return {}

    def cancel(self, run: RunStatus) -> None:
        alive = [node.run for node in run.nodes if not node.run.over]
        OciRunPlatform(self.looker.session).cancel(self.looker.call, alive)


def make(question: Question) -> OciLook:
    config, cloud = question.config, question.cloud
    session = session_of_caller(config, cloud, question.profile)
    compartment = compartment_of_caller(config, cloud, question.place)
    if not compartment:
        raise UnknownPlaceError(
            "where are the runs? Name a stack, or a compartment with --compartment, or use --local for the local cloud"
        )
    call = call_of("runs", question.tell)
    looker = Looker(session, replace(call, patience=FIRST_PATIENCE), compartment, question.wanted)
    if cloud is not None:
        looker.witness = Witness(cloud)
    return OciLook(looker, call.patience, cloud)
