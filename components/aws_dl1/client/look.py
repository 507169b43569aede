# SPDX-License-Identifier: Apache-2.0
"""Runs on AWS DL1, as `trainyard runs` asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from components.aws_dl1.client.caller import session_of_caller
from components.aws_dl1.client.endings import StatusFolder, parse_folder
from components.aws_dl1.client.lines import LogMerger
from components.aws_dl1.client.status import Looker
from components.platform.calls import call_of
from components.platform.look import FIRST_PATIENCE, Look, Question, UnknownPlaceError
from components.platform.status import MachineSeen, RunStatus


class AwsLook(Look[Looker]):
    """`components.platform.look.RunLook`."""

    @property
    def where(self) -> str:
        return f"the bucket {self.looker.bucket}"

    def machines(self) -> Sequence[MachineSeen]:
        return self.looker.machines()

    def cancel(self, run: RunStatus) -> None:
        self.looker.platform.cancel(self.looker.call, [node.run for node in run.nodes if not node.run.over])

    def merger(self, ranks: frozenset[int]) -> LogMerger:
        return LogMerger(self.looker.session, self.looker.call, ranks)

    def place_of(self, run: RunStatus) -> StatusFolder | None:
        return parse_folder(run.folder)


def make(question: Question) -> AwsLook:
    bucket = question.place or (question.bucket() if question.bucket else "")
    if not bucket:
        raise UnknownPlaceError("where are the runs? Name a stack: they are in its bucket")
    session = session_of_caller(question.config, question.cloud, question.profile)
    call = call_of("runs", question.tell)
    looker = Looker(session, replace(call, patience=FIRST_PATIENCE), bucket, question.wanted)
    return AwsLook(looker, call.patience)
