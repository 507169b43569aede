# SPDX-License-Identifier: Apache-2.0
"""A node's whole part in a run: it meets the others, runs the processes, and then starts them again or ends."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher import commands, exits, network, output, peers, speaks
from launcher.board import FAILED, RETRY, STOPPED, SUCCEEDED, Board
from launcher.board_client import BoardClient
from launcher.document import Launch
from launcher.errors import LaunchError, MissingError, PeerFailedError
from launcher.peers import name_ranks
from launcher.pin import Pin
from launcher.placeholders import Place
from launcher.preflight import Preflight
from launcher.printing import LinePrinter
from launcher.processes import ChildProcesses
from launcher.readiness import StoppedError, Wait, peers_timeout
from launcher.retries import Final, Retries, Verdict, run_verdict
from launcher.settings import number_setting
from launcher.stacks.report import FAILURE, Stacks
from launcher.stalls import Stalls
from launcher.status import StatusReporter
from launcher.supervise import GRACE_SECONDS, GRACE_VARIABLE, READY_SECONDS, READY_VARIABLE, Ended, Life, Signals
from launcher.used_up import count_memory_kills, full_folder_words, used_up_memory
from launcher.workplace import Workplace

_REMEDY = "check whether it started (capacity, limits, image) and what it printed, then raise `attempt`"
_RESTORE_REMEDY = "cancel the run's earlier starts that are still running, then raise `attempt`"
# How long nodes may go on after the run has succeeded without them.
LINGER_VARIABLE = "TRAINYARD_LINGER_SECONDS"
LINGER_SECONDS = 30.0
_POST_SECONDS = 20.0
# A service may fail because the others have ended. It waits this long to learn that.
_NEWS_SECONDS = 8.0
# How long the nodes that serve a command may take to end, before the command's node ends its own service.
_RELEASE_SECONDS = 15.0
_TURN = 0.05
_LOOK_SECONDS = 0.2


@dataclass
class Node:
    """The main loop of one launcher."""

    launch: Launch
    environment: Mapping[str, str]
    say: LinePrinter
    signals: Signals
    children: ChildProcesses
    board_client: BoardClient | None
    workplace: Workplace
    reporter: StatusReporter
    pin: Pin
    stalls: Stalls
    retries: Retries
    preflight: Preflight
    stacks: Stacks
    _generation: int = field(default=0, init=False)
    _ran: float = field(default=0.0, init=False)
    _ready: bool = field(default=True, init=False)
    _claimed: bool = field(default=False, init=False)
    _lives: int = field(default=0, init=False)
    _main: str = field(default="", init=False)
    _complete_since: float = field(default=0.0, init=False)
    _saved: bool | None = field(default=None, init=False)
    _looked: float = field(default=0.0, init=False)
    _lost: list[int] = field(default_factory=list, init=False)
    _memory_kills: int = field(default=0, init=False)

    def run(self) -> int:
        """Runs the node's part, and returns its exit code."""
        try:
            while True:
                place = self._meet()
                self._test(place)
                self.workplace.restore(self._wait("the checkpoints", _RESTORE_REMEDY))
                code = self._decide(self._live(place))
                if code is not None:
                    return code
        except StoppedError:
            return self._finish(FAILED, exits.SIGNALLED + self.signals.received, "was asked to end")
        except PeerFailedError as failed:
            self.say(str(failed))
            return self._finish(STOPPED, failed.code or 1, str(failed), failed.rank)
        except MissingError as missing:
            return self._finish(FAILED, exits.TEMPORARY, str(missing))
        except LaunchError as error:
            return self._finish(FAILED, exits.CONFIGURATION, str(error))

    def _meet(self) -> Place:
        self.reporter.change(state="retrying" if self.retries.has_retried or self._generation else "waiting")
        self._claimed = False
        wait = self._wait("the other nodes", _REMEDY)
        request = peers.PeerRequest(self.launch, self.environment, self._generation, wait, self.board_client)
        members = peers.find_addresses(request)
        address, self._main = members[self.launch.rank], members.get(0, "")
        other = next((peer for peer in members.values() if peer != address), address)
        platform_address = self.launch.identity.address()
        addresses_of_node = (platform_address or network.source_towards(other), address)
        interface = next(filter(None, map(network.interface_with_address, addresses_of_node)), "")
        if self.launch.nodes > 1:
            everyone = len(members) == self.launch.nodes
            who = f"all {len(members)} nodes" if everyone else f"{len(members)} of {self.launch.nodes} nodes"
            self.say(f"{who} are there after {wait.waited:.1f} s; this one is {address}")
        self.reporter.change(address=address, waitedSeconds=round(wait.waited, 3))
        addresses = tuple(members.get(rank, "") for rank in range(self.launch.nodes))
        self._lives += 1
        return Place(addresses, address, interface, self._lives - 1, self.workplace.scratch)

    def _test(self, place: Place) -> None:
        try:
            self.preflight.run(self._generation, place)
        finally:
            self.reporter.note_preflight(self.preflight.result)

    def _wait(self, what: str, remedy: str) -> Wait:
        return Wait(self.say, lambda: what, peers_timeout(self.environment), remedy, self.signals.ended)

    def _live(self, place: Place) -> Ended:
        variables = {**self.workplace.variables, **self.stacks.variables, **self.pin.variables(place.interface)}
        speaks.write_programs(self.launch, place)
        work = commands.build_work(self.launch, place, {**self.environment, **variables}, self.workplace.code())
        self.stacks.begin(work.folder)
        self.workplace.begin(work.folder)
        self.reporter.begin()
        life = Life(
            self.launch, place, work, self.children, self.signals, self.say, self._outside,
            lambda: self._started(place),
            self.workplace.before_the_end, self._release,
            grace=number_setting(self.environment, GRACE_VARIABLE, GRACE_SECONDS),
            ready_seconds=number_setting(self.environment, READY_VARIABLE, READY_SECONDS),
        )  # fmt: skip
        began, self._memory_kills = time.monotonic(), count_memory_kills()
        try:
            ended = life.run()
        except MissingError:
            self._say_logs(place)
            raise
        self._ran = time.monotonic() - began
        # A service without a command has no other sign of being ready than that it outlasts the wait of the others.
        serves = self.launch.service and not self.launch.command
        self._ready = ended.ready and not (serves and self._ran < life.ready_seconds)
        if ended.code and not ended.stopped and not ended.signal:
            self._say_logs(place)
        self.stalls.end()
        self.reporter.last()
        # A process that ended on request has been synced already. One that was killed may leave a partial file.
        self.workplace.flush(whole=bool(ended.stopped or ended.signal) or ended.code < exits.SIGNALLED)
        return ended

    def _say_logs(self, place: Place) -> None:
        for line in output.ends_of_logs(place.scratch) if place.scratch else ():
            self.say(line)

    def _started(self, place: Place) -> None:
        self.reporter.started()
        self.stalls.begin(self._generation, place.interface)

    def _release(self) -> None:
        """Runs when the command has succeeded. Nodes that serve it end first, then the service on this node."""
        if self.board_client is None or not self.board_client.watches or not self.launch.served:
            return
        self.reporter.last()
        self._saved = self.workplace.flush(whole=True) and self.workplace.finish()
        if not self._saved:
            return
        self._claimed = True
        self.board_client.end(self._generation, SUCCEEDED, 0)
        serving = {rank for role in self.launch.roles if role.service for rank in self.launch.ranks_of(role.name)}
        deadline = time.monotonic() + _RELEASE_SECONDS
        while time.monotonic() < deadline and not self.signals.received:
            if serving <= {event.rank for event in self.board_client.board.endings()} | set(self.board_client.lost()):
                return
            time.sleep(_TURN)

    def _outside(self) -> str:
        """Why this node's processes should end because of other nodes; empty if they should not."""
        self.reporter.tick()
        now = time.monotonic()
        if now - self._looked < _LOOK_SECONDS:
            return ""
        self._looked = now
        stalled = self.stalls.stalled(self._known())
        if stalled or self.board_client is None or not self.board_client.watches:
            return stalled
        self.stacks.answer(self.board_client.board)
        culprit = self._restarting(self.board_client.board)
        if culprit is not None:
            return self._after_peer(f"rank {self.launch.label(culprit)} failed, so all ranks start again")
        outcome = self._verdict(self.board_client.board)
        if outcome is None or (outcome.succeeded and self.launch.elastic):
            return ""
        if outcome.succeeded and not self.launch.service:
            self._complete_since = self._complete_since or time.monotonic()
            linger = number_setting(self.environment, LINGER_VARIABLE, LINGER_SECONDS)
            if time.monotonic() - self._complete_since < linger:
                return ""
        return self._explain(outcome) if outcome.succeeded else self._after_peer(self._explain(outcome))

    def _after_peer(self, why: str) -> str:
        """Looks where this node's processes are, because another one has failed. Returns why they should end."""
        if self.launch.gang:
            self.stacks.take(FAILURE)
        return why

    def _restarting(self, known: Board) -> int | None:
        """The rank whose failure makes this node start again, if there is one."""
        for event in known.endings(self._generation):
            if event.how == FAILED and self.launch.gang:
                return None
            if event.how == RETRY and event.rank != self.launch.rank and self._takes_all(event.rank):
                return event.rank
        return None

    def _takes_all(self, rank: int) -> bool:
        """Whether other nodes have to start again when this rank does: in a gang; in an elastic run, if it is the main
        node; and services, if what they serve fails."""
        if self.launch.elastic:
            return rank == 0
        return self.launch.gang or (self.launch.served and not self.launch.role_of(rank).service)

    def _verdict(self, known: Board) -> Verdict | None:
        lost = self.board_client.lost() if self.board_client is not None else []
        if self.board_client is not None and lost and lost != self._lost:
            self._lost = lost
            self.say(f"{name_ranks(self.launch, lost)} sent no heartbeat for {self.board_client.lost_after:.0f} s")
        return run_verdict(self.launch, [*known.finals(self.launch), *(Final(rank, False, None) for rank in lost)])

    def _explain(self, outcome: Verdict) -> str:
        label = self.launch.label(outcome.rank)
        if outcome.code == 0 or (outcome.succeeded and outcome.code is None):
            return f"the run is complete: rank {label} was the last one it needed"
        how = "was lost" if outcome.code is None else f"failed with {exits.describe_exit(outcome.code)}"
        if self.launch.elastic and outcome.rank:
            how += f", and training needs {self.launch.fewest} nodes (`minNodes`)"
        return f"rank {label} {how}" + (", which does not fail the run (completion policy)" * outcome.succeeded)

    def _decide(self, ended: Ended) -> int | None:
        """The exit code; None to start again."""
        if ended.signal:
            return self._finish(FAILED, ended.code, f"was asked to end by {exits.describe_exit(ended.code)}")
        if ended.stopped and ended.stopped == self.stalls.reason:
            self.stalls.print_last_lines(self._known())
            return self._after_failure(exits.STALLED, ended.stopped)
        if ended.stopped:
            return self._after_stop(ended.stopped)
        if ended.code == 0 and not self.launch.service:
            return self._finish(SUCCEEDED, 0, "")
        if self.launch.elastic and self.launch.rank and not self._main_serves():
            return self._after_main(ended.code)
        if self.launch.service and self._news(None if ended.code == 0 else _NEWS_SECONDS):
            return self._after_stop("")
        return self._finish(SUCCEEDED, 0, "") if ended.code == 0 else self._after_failure(ended.code)

    def _news(self, seconds: float | None) -> bool:
        """Waits up to `seconds` (None: without limit) until the others have ended or start again. Returns whether they
        did: this explains why this node's processes ended."""
        if self.board_client is None or not self.board_client.watches:
            return False
        deadline = None if seconds is None else time.monotonic() + seconds
        while deadline is None or time.monotonic() < deadline:
            if (
                self._restarting(self.board_client.board) is not None
                or self._verdict(self.board_client.board) is not None
            ):
                return True
            if self.signals.received:
                raise StoppedError
            time.sleep(_TURN)
        return False

    def _main_serves(self) -> bool:
        """Whether the main node's rendezvous answers. Then its worker is there, too."""
        ports = (self.launch.awaited_port(awaited, 0) for awaited in self.launch.awaits)
        return all(network.port_answers(self._main, port) for port in ports)

    def _after_main(self, code: int) -> int | None:
        """Decides after the end of the main node's part, without which this node cannot go on."""
        why = f"ended with {exits.describe_exit(code)} when the main node's part had ended"
        self.say(why)
        while not self._news(_LOOK_SECONDS):
            if self.board_client is None or not self.board_client.watches or self._main_serves():
                return self._after_failure(code)
        outcome = self._verdict(self._known())
        if outcome is not None and outcome.succeeded and code != exits.TEMPORARY:
            return self._finish(FAILED, code, why)
        return self._after_stop(why)

    def _known(self) -> Board:
        return self.board_client.board if self.board_client is not None else Board((), 0.0)

    def _after_stop(self, why: str) -> int | None:
        """Decides after other nodes stopped this one: all start again together, or the run is over."""
        known = self._known()
        if self._restarting(known) is not None:
            self.say(f"stopped: {why}" if why else "the nodes that this service serves start again, so it does too")
            self._generation += 1
            return None
        outcome = self._verdict(known)
        if outcome is None or outcome.succeeded:
            return self._finish(STOPPED, 0, f"stopped: {why}" if why else "")
        # The others may have been quicker to report that they lost this one.
        said = "; ".join(filter(None, (self._explain(outcome), used_up_memory(self._memory_kills))))
        return self._finish(STOPPED, outcome.code or 1, f"stopped: {said}", outcome.rank)

    def _after_failure(self, code: int, why: str = "") -> int | None:
        retries = self.retries.allows_retry(code, self._ran, self._ready)
        alone = self.board_client is None or not self.board_client.watches or not self._takes_all(self.launch.rank)
        lost_peer = self.launch.nodes > 1 and exits.has_lost_peer(self.children.last_line)
        memory = used_up_memory(self._memory_kills)
        full = full_folder_words((str(self.workplace.root), self.environment.get("TMPDIR") or "/tmp"))
        if retries and not alone and any(final.succeeded for final in self._known().finals(self.launch)):
            self.say("another node has finished already, so this node cannot start again")
            retries = False
        if not alone and self.board_client is not None:
            self._claimed = True
            self.board_client.end(self._generation, RETRY if retries else FAILED, code)
            known = self._known() if self.launch.elastic else self.board_client.fresh(_POST_SECONDS)
            culprit = None if self.launch.elastic else known.culprit(self._generation)
            if not why and self.stalls.explains_end(known):
                # Another rank ends because of the stall. That ended our processes before we read its report.
                why = self.stalls.reason
                self.stalls.print_last_lines(known)
            if culprit is not None and culprit.rank != self.launch.rank:
                first = f"rank {self.launch.label(culprit.rank)} failed first, with {exits.describe_exit(culprit.code)}"
                if memory or not lost_peer:
                    # It was not that failure that ended this rank: it may even be the cause (components/…/causes.py).
                    own = self.launch.label(self.launch.rank)
                    first += f"; rank {own} {exits.ALSO_FAILED} {exits.describe_failure(code, memory, full)}"
                # All ranks stall together, so none failed first.
                why, named_first = why or first, None if why else culprit.rank
                self.say(f"ended with {exits.describe_exit(code)}: {why}")
                if culprit.how == FAILED:
                    return self._finish(STOPPED, culprit.code or 1, why, named_first)
                self._generation += 1
                return None
        if not retries:
            said = exits.symptom_of(self.children.last_line) or (exits.PEER_SYMPTOM if lost_peer else "")
            text = exits.describe_failure(code, memory or said, full)
            return self._finish(FAILED, code, why or f"ended with {text}{self.retries.why_no_retry(code)}")
        self._generation += 0 if alone else 1
        self._pause(code)
        return None

    def _pause(self, code: int) -> None:
        """Waits for the next retry. Ends early if other nodes decide something; the next meeting deals with that."""
        pause = self.retries.charge(code, self._ran, self._ready)
        why = f"{exits.describe_exit(code)}, {self.retries.describe(code, pause)}"
        self.say(f"ended with {why}")
        self.reporter.change(state="retrying", code=code, reason=why)
        wait = Wait(self.say, lambda: "the retry", pause, "", self.signals.ended)
        while wait.turn(_TURN) and not self._outside():
            pass

    def _finish(self, how: str, code: int, why: str, culprit: int | None = None) -> int:
        if why:
            self.say(why)
        self.pin.undo()
        saved = self.workplace.finish() if self._saved is None else self._saved
        if code == 0 and not saved and how != STOPPED:
            why, code, how = "its output could not be uploaded to the bucket", exits.TEMPORARY, FAILED
            self.say(why)
        state = {SUCCEEDED: "succeeded", FAILED: "failed", STOPPED: "stopped"}[how]
        self.reporter.change(
            state=state, code=code, reason=self.say.masked(why), culprit=culprit, lost=self.workplace.lost,
            localOnly=self.workplace.local_only,
        )  # fmt: skip
        if self.board_client is not None:
            if self.board_client.watches and not (self._claimed and how in (FAILED, SUCCEEDED)):
                self.board_client.end(self._generation, how, code)
            if not self.board_client.close(_POST_SECONDS):
                why = self.board_client.refused or "the object store does not answer"
                self.say(f"the other nodes do not know how this one ended: {why}")
        return code
