# SPDX-License-Identifier: Apache-2.0
"""Tries of a job: runs that `trainyard run` started beside the stack. They end before what they stand on goes.

A platform may keep a job whose runs are alive, so whatever removes or replaces a job would fail at its end. No state
has the tries, so the runs of the state speak for them: a preview that replaces the job names them, and the run that
goes ends them. A run that goes for good ends the tries that are like it, because with its job gone they could not go
on. Which input names the job is the platform's to say (`OwnInputs.stands_on`).
"""

import threading
from collections.abc import Callable, Sequence

from components.platform.calls import Call
from components.platform.errors import ProviderError
from components.platform.inputs import own_inputs
from components.platform.run_platform import RunPlatform, Try
from components.platform.values import Properties, canonical
from components.platform.waiting import wait_for_end
from launcher.escaping import terminal
from provider.base.diff import Diff, changed_keys


class JobTries:
    """What this process has seen of runs and their jobs: the engine asks for a diff before it replaces anything."""

    def __init__(self) -> None:
        self._going: set[str] = set()
        self._replaced: set[str] = set()
        self._lock = threading.Lock()

    def announce(self, call: Call, platform: Callable[[], RunPlatform], old: Properties, diff: Diff) -> None:
        """Says which tries a replacement of the job ends, once for each job."""
        job = _job_of(old)
        if not diff.replaces or not job:
            return
        with self._lock:
            self._replaced.add(call.urn)
            if _stands_on(old) not in changed_keys(diff) or job in self._going:
                return
            self._going.add(job)
        try:
            alive = platform().tries(call, old, patiently=False)
        except ProviderError as error:
            call.report.warning(f"the job is replaced; whether tries of it are alive is not known: {error.cause}")
            return
        if alive:
            call.report.warning(f"the job is replaced, which ends its tries: {_names(alive)}")

    def end(self, call: Call, platform: RunPlatform, old: Properties, minutes: float) -> None:
        """Ends the tries that cannot go on without this run."""
        job_goes = _job_of(old) in self._going
        if call.urn in self._replaced and not job_goes:
            return
        run = (old.get("tags") or {}).get("run")
        alive = [one for one in platform.tries(call, old, patiently=True) if job_goes or one.like in ("", run)]
        if not alive:
            return
        call.report.warning(f"its tries end with it: {_names(alive)}; waiting until they have ended")
        nodes = [node for one in alive for node in one.nodes]
        platform.cancel(call, nodes)
        wait_for_end(call, platform, nodes, minutes)


def _stands_on(inputs: Properties) -> str:
    own = own_inputs(inputs.get("platform"))
    return own.stands_on if own else ""


def _job_of(inputs: Properties) -> str:
    """What the run stands on, as text. Empty if its platform is not known."""
    named = inputs.get(_stands_on(inputs))
    return canonical(named) if named else ""


def _names(tries: Sequence[Try]) -> str:
    return terminal(", ".join(sorted(one.title for one in tries)))
