# SPDX-License-Identifier: Apache-2.0
"""Runs on OpenPAI, as `trainyard runs` asks for them."""

from __future__ import annotations

from dataclasses import replace

from components.openpai.client.caller import session_of_caller
from components.openpai.client.lines import LogMerger
from components.openpai.client.runs import OpenPaiRunPlatform
from components.openpai.client.status import Looker
from components.openpai.client.storages import Storages, storages_folder
from components.platform.calls import call_of
from components.platform.look import FIRST_PATIENCE, FolderPlace, Look, Question, UnknownPlaceError
from components.platform.status import RunStatus


class OpenPaiLook(Look[Looker]):
    """`components.platform.look.RunLook`."""

    @property
    def where(self) -> str:
        session = self.looker.platform.session
        return f"the cluster {session.uri}" + (f" for {session.user}" if session.user else "")

    def cancel(self, run: RunStatus) -> None:
        self.looker.platform.cancel(self.looker.call, [node.run for node in run.nodes if not node.run.over])

    def merger(self, ranks: frozenset[int]) -> LogMerger:
        return LogMerger(self.looker.platform, self.looker.call, ranks)

    def place_of(self, run: RunStatus) -> FolderPlace | None:
        """Starts report on storages."""
        return None


def make(question: Question) -> OpenPaiLook:
    session = session_of_caller(question.config, question.cloud, question.profile, question.place, question.folder)
    if not session.uri:
        raise UnknownPlaceError(
            "where are the runs? Name a stack, or the cluster's portal with --place, or use --local for the local cloud"
        )
    call = call_of("runs", question.tell)
    storages = Storages(storages_folder(question.cloud.home)) if question.cloud is not None else None
    platform = OpenPaiRunPlatform(session)
    looker = Looker(platform, replace(call, patience=FIRST_PATIENCE), question.wanted, storages)
    return OpenPaiLook(looker, call.patience)
