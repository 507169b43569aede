# SPDX-License-Identifier: Apache-2.0
"""Runs on AWS DL1, as `trainyard runs` asks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from localcloud import admin
from localcloud.control import Cloud, CloudError
from provider.aws_dl1.caller import session_of_caller
from provider.aws_dl1.endings import parse_folder
from provider.base.asking import call_of
from provider.runs.progress import ProgressPoint
from runstatus.aws_dl1.logs import LogMerger
from runstatus.aws_dl1.looker import Looker
from runstatus.platform import Question, UnknownPlaceError
from runstatus.seen import MachineSeen, RunStatus

# Somebody waits for the first look. A cloud that has answered once may fall silent for a while.
FIRST_PATIENCE = 10.0


@dataclass
class AwsLook:
    """`runstatus.platform.RunLook`."""

    looker: Looker
    # Of all looks but the first.
    patience: float
    cloud: Cloud | None = None
    _merged: dict[frozenset[int], LogMerger] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return f"the bucket {self.looker.bucket}"

    def look(self, deeply: bool = True, history: bool = False) -> list[RunStatus]:
        runs = self.looker.look(deeply, history)
        self.looker.call = replace(self.looker.call, patience=self.patience)
        return runs

    def machines(self) -> Sequence[MachineSeen]:
        return self.looker.machines()

    def lines(self, runs: Iterable[RunStatus], ranks: frozenset[int]) -> Iterator[str]:
        merged = self._merged.setdefault(ranks, LogMerger(self.looker.session, self.looker.call, ranks))
        return merged.new(runs)

    def recall(self, run: RunStatus) -> Mapping[int, Sequence[ProgressPoint]]:
        place = parse_folder(run.folder)
        if self.cloud is None or place is None:
            return {}
        try:
            return admin.read_progress(self.cloud, place.bucket, place.prefix)
        except CloudError:  # progress is a help, states are told without it
            return {}

    def cancel(self, run: RunStatus) -> None:
        self.looker.platform.cancel(self.looker.call, [node.run for node in run.nodes if not node.run.over])


def make(question: Question) -> AwsLook:
    bucket = question.place or (question.bucket() if question.bucket else "")
    if not bucket:
        raise UnknownPlaceError("where are the runs? Name a stack: they are in its bucket")
    session = session_of_caller(question.config, question.cloud, question.profile)
    call = call_of("runs", question.tell)
    looker = Looker(session, replace(call, patience=FIRST_PATIENCE), bucket, question.wanted)
    return AwsLook(looker, call.patience, question.cloud)
