# SPDX-License-Identifier: Apache-2.0
"""Decides how a run ended from how its nodes ended."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from localcloud.hosts.assignment import Group, Outline, RunVerdict


def judge_run(outline: Outline, results: Mapping[int, Mapping[str, Any]]) -> RunVerdict:
    """FAILED as soon as a group cannot reach its minimum any more, SUCCEEDED once all nodes have ended."""
    groups, placed = outline.groups, outline.placed
    states = []
    reasons = []
    for group in groups:
        ranks = [rank for rank, name in enumerate(placed) if name == group.name]
        failed = [rank for rank in ranks if rank in results and not _succeeded(results[rank])]
        if len(ranks) - len(failed) < group.minimum_success:
            states.append("FAILED")
            reasons.append(_reason(group, failed[0], results[failed[0]], outline.minutes))
        else:
            states.append("SUCCEEDED" if all(rank in results for rank in ranks) else "IN_PROGRESS")
    state = next((state for state in ("FAILED", "IN_PROGRESS") if state in states), "SUCCEEDED")
    named = tuple((group.name, state) for group, state in zip(groups, states, strict=True) if group.name)
    return RunVerdict(state, reasons[0] if reasons else "", named)


def _succeeded(result: Mapping[str, Any]) -> bool:
    return bool(result["reason"] == "exited" and result["code"] == 0)


def _reason(group: Group, rank: int, result: Mapping[str, Any], minutes: int) -> str:
    where = f"Node {rank} of group {group.name}: " if group.name else ""
    code = result.get("code")
    if result["reason"] == "time limit":
        return f"{where}The job run exceeded its maximum runtime of {minutes} minutes"
    if result["reason"] == "unstartable":
        return f"{where}The command could not be started: {result['detail']}"
    if result["reason"] == "refused":
        return f"{where}{result['detail']}"
    if result["reason"] == "stopped":
        return f"{where}The host was stopped while the run was in progress"
    if result["reason"] == "lost":
        return f"{where}The host was lost: {result['detail']}"
    more = f": {result['detail']}" if result.get("detail") else ""
    if result["reason"] == "limit":
        return f"{where}The job run was ended{more}"
    if code is not None and code < 0:
        return f"{where}The job run was killed by {signal.Signals(-code).name}{more}"
    return f"{where}The job run exited with code {code}{more}"
