# SPDX-License-Identifier: Apache-2.0
"""Asks the nodes of a living run where they are: a small object that their launchers look for and answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from components.platform.calls import ProviderError
from components.platform.files import Content, FileProblemError, StoreOpener, TransferError
from components.platform.stack_requests import new_request_token, stack_request_name
from components.platform.status import RunStatus
from components.platform.streams import checksum_text, new_md5
from trainyard.why.stack_groups import rank_words, read_stack

# Launchers of many nodes look at the store every six seconds, and take two for the stacks.
ANSWER_SECONDS = 15.0
_SECONDS_BETWEEN_LOOKS = 0.5
_EMPTY = Content(-1, 0, 0, checksum_text(new_md5().digest()))


@dataclass(frozen=True)
class Asked:
    """The run as it is with the answers. `request`: empty if the nodes could not be asked. `note`: what is lacking."""

    run: RunStatus
    request: str
    note: str


def ask_living_nodes(
    run: RunStatus, open_store: Callable[[], StoreOpener], look_again: Callable[[], RunStatus], seconds: float
) -> Asked:
    """Asks, and waits for the answers of the nodes that run."""
    running = {node.rank for node in run.nodes if (node.launcher_status or {}).get("state") == "running"}
    if run.folder is None or not running:
        return Asked(run, "", "")
    if len(run.nodes) == 1:  # it looks for no objects of others
        said = any(read_stack(node.rank, node.launcher_status or {}) for node in run.nodes)
        return Asked(run, "", "" if said else "a single node says where it is once it was idle for `stallMinutes`")
    token = new_request_token()
    try:
        store, folder = open_store().folder(run.folder)
        store.put(f"{folder}/{stack_request_name(token)}", _EMPTY, None)
    except (TransferError, ProviderError, FileProblemError) as error:
        return Asked(run, "", f"the ranks could not be asked where they are: {error}")
    deadline = time.monotonic() + seconds
    while True:
        run = look_again()
        answered = {node.rank for node in run.nodes if read_stack(node.rank, node.launcher_status or {}, token)}
        missing = sorted(running - answered)
        if not missing or run.over:
            return Asked(run, token, "")
        if time.monotonic() > deadline:
            note = f"{rank_words(missing)} did not say within {seconds:.0f} s where they are"
            return Asked(run, token, f"{note}: their launchers may be of a release without stacks")
        time.sleep(_SECONDS_BETWEEN_LOOKS)
