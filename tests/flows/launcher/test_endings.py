# SPDX-License-Identifier: Apache-2.0
"""How runs end: retry and completion policies; nodes that fail at each stage, are stopped, late or lost."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from schemas.model import Completion, Job, Retry, Role
from tests.support.nodes import Nodes, Place, gang, nodes, planned, waited

# What each rank does in each of its lives: `RANK:life,life;…`, a life being a code, `kill`, or `wait` (until ended).
PLAN = """
import os, signal, sys, time
rank, folder = os.environ["RANK"], os.getcwd()
count = len([name for name in os.listdir(folder) if name.startswith(f"life-{rank}-")])
open(f"{folder}/life-{rank}-{count}", "w").close()
lives = dict(part.split(":") for part in sys.argv[1].split(";"))[rank].split(",")
life = lives[min(count, len(lives) - 1)]
print("life", count, life, flush=True)
deadline = time.monotonic() + 300
if os.environ.get("TOGETHER") and life != "wait":
    # No rank fails before all have begun, because the lives of each are counted.
    others = [f"{folder}/life-{other}-{count}" for other in range(int(os.environ["WORLD_SIZE"]))]
    while not all(map(os.path.exists, others)) and time.monotonic() < deadline:
        time.sleep(0.02)
if life == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
while life == "wait" and time.monotonic() < deadline:
    time.sleep(0.05)
sys.exit(1 if life == "wait" else int(life))
"""


def start(run: Nodes, lives: str, *ranks: int, **variables: str) -> Nodes:
    run.script(PLAN)
    run.changes = {**run.changes, "command": ["train.py", lives]}
    return run.start(*ranks, **variables)


@pytest.mark.parametrize(
    ("name", "first", "retries"),
    [("unknown", "3", 1), ("killed", "kill", 1), ("for-ever", "3,4,5", -1), ("transient", "75", 0)],
)
def test_a_gang_starts_again_together(place: Place, tmp_path: Path, name: str, first: str, retries: int) -> None:
    with nodes(place, tmp_path, gang(retries), f"again-{name}") as run:
        waits = "wait," * (first.count(",") + 1)
        start(run, f"0:{waits}0;1:{first},0;2:{waits}0", TOGETHER="1")
        assert run.codes() == [0, 0, 0]
        lives = first.count(",") + 2
        assert len(list(tmp_path.glob("life-*"))) == 3 * lives
        assert place.status(run, 2)["tries"] == lives
        assert "rank 1 (worker-0) failed, so all ranks start again" in run.launchers[2].text


def test_a_retry_counts_only_for_the_node_that_failed(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(1, nodes=2), "each-its-own") as run:
        start(run, "0:wait,5,0;1:3,wait,0", TOGETHER="1")
        assert run.codes() == [0, 0]
        assert len(list(tmp_path.glob("life-*"))) == 6


def test_transient_failures_use_up_no_retries(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(1, nodes=2), "not-counted") as run:
        # The one retry of rank 1 is still there after three transient failures, and then it is used up.
        start(run, "0:wait;1:75,75,75,3,75,4", TOGETHER="1")
        assert run.codes() == [4, 4]
        assert len(list(tmp_path.glob("life-1-*"))) == 6
        assert "retry 1 of 1" in run.launchers[1].text
        assert "a failure of the kind transient: 3 in a row, not counted; the retry starts" in run.launchers[1].text


def test_transient_failures_are_retried_visibly_until_the_maximum_runtime(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=1), "maximum") as run:
        start(run, "0:75", TRAINYARD_MAXIMUM_MINUTES="0.1")
        seen = run.launchers[0].says(
            r"(\d+) in a row, not counted; the retry starts in \d s, the maximum runtime ends this in"
        )
        waited(lambda: place.status(run, 0)["state"] == "retrying" and "not counted" in place.status(run, 0)["reason"])
        assert run.codes() == [75]
        assert int(seen[1]) >= 3
        told = place.status(run, 0)
        assert (told["state"], told["code"]) == ("failed", 75)
        assert "the maximum runtime of 0.1 min leaves no time for another" in told["reason"]
        assert told["tries"] <= 8


@pytest.mark.parametrize(
    ("name", "life", "retries", "code"),
    [("none-left", "3", 0, 3), ("used-up", "3,4", 1, 4), ("permanent", "127", 5, 127), ("killed", "kill", 0, 137)],
)
def test_a_failure_ends_the_gang_and_is_named(
    place: Place, tmp_path: Path, name: str, life: str, retries: int, code: int
) -> None:
    with nodes(place, tmp_path, gang(retries), f"ends-{name}") as run:
        start(run, f"0:wait;1:wait;2:{life}")
        assert run.codes() == [code, code, code]
        assert "rank 2 (worker-1) failed with" in run.launchers[0].text
        told = place.status(run, 2)
        assert (told["state"], told["code"]) == ("failed", code)
        assert place.status(run, 1)["state"] == "stopped"


def test_a_missing_command_is_a_permanent_failure(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(5, nodes=2), "not-there") as run:
        run.changes = {"command": ["no-such-program", "x"]}
        assert run.start().codes() == [78, 78]
        assert "`no-such-program` is not in this image" in run.shown()


def apart(worker: Completion, retries: int = 0) -> Job:
    roles = {"main": Role(1), "worker": Role(3, completion=worker, retry=Retry(retries))}
    return planned("pytorch", roles, ports={"data": "all"})


@pytest.mark.parametrize(
    ("name", "policy", "lives", "codes"),
    [
        # One failure fails the run, and stops the others.
        ("first", Completion(), "0:wait;1:3;2:wait;3:wait", [3, 3, 3, 3]),
        # The second one does, and keeps its own exit code.
        ("second", Completion(min_failed=2), "0:wait;1:3;2:wait;3:wait", [143, 3, 143, 143]),
        # Failures never do.
        ("never", Completion(min_failed=-1), "0:0;1:3;2:4;3:0", [0, 3, 4, 0]),
        # Enough nodes have succeeded: the others are stopped, and the run succeeds.
        ("enough", Completion(min_succeeded=2), "0:wait;1:0;2:0;3:wait", [0, 0, 0, 0]),
        # All must end.
        ("all", Completion(min_succeeded=-1), "0:0;1:0;2:0;3:0", [0, 0, 0, 0]),
    ],
)
def test_a_completion_policy_ends_all_nodes(
    place: Place, tmp_path: Path, name: str, policy: Completion, lives: str, codes: list[int]
) -> None:
    with nodes(place, tmp_path, apart(policy), f"complete-{name}") as run:
        run.changes = {"gang": False}
        if name == "second":
            start(run, lives)
            run.launchers[1].code()
            run.launchers[2].says(r"\[2\] life")
            # Its process is ended, not its launcher.
            _end_process(tmp_path, run.launchers[2].process.pid)
        else:
            start(run, lives, TRAINYARD_LINGER_SECONDS="1")
        assert run.codes() == codes


def _end_process(folder: Path, launcher: int) -> None:
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for pid in children:
        os.kill(int(pid), signal.SIGTERM)


def test_without_a_gang_a_node_restarts_alone(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, apart(Completion(), retries=2), "alone") as run:
        run.changes = {"gang": False}
        start(run, "0:0;1:3,3,0;2:0;3:0")
        assert run.codes() == [0, 0, 0, 0]
        assert sorted(path.name for path in tmp_path.glob("life-*")) == [
            "life-0-0", "life-1-0", "life-1-1", "life-1-2", "life-2-0", "life-3-0",
        ]  # fmt: skip


def test_the_others_wait_for_a_late_node(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "late") as run:
        start(run, "0:0;1:0;2:0", 0, 1)
        waited(lambda: len(place.objects(f"{run.folder}/peers/")) == 2)
        resident = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{run.launchers[0].process.pid}/status").read_text())
        assert resident is not None
        assert int(resident[1]) < 30_000, "a launcher is small: memory belongs to training"
        run.start(2)
        assert run.codes() == [0, 0, 0]


def test_a_node_that_never_arrives_is_named(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(), "never") as run:
        start(run, "0:0;1:0;2:0", 0, 1, TRAINYARD_WAIT_SECONDS="15")
        assert run.codes() == [75, 75]
        assert "gave up after 15 s: waited for rank 2 (worker-1). Remedy: check whether it started" in run.shown()


@pytest.mark.parametrize("stage", ["running", pytest.param("waiting", marks=pytest.mark.torture)])
def test_a_lost_node_is_named(place: Place, tmp_path: Path, stage: str) -> None:
    with nodes(place, tmp_path, gang(), f"lost-{stage}") as run:
        first = (0, 1) if stage == "waiting" else (0, 1, 2)
        start(run, "0:wait;1:wait;2:wait", *first, TRAINYARD_LOST_SECONDS="15")
        if stage == "waiting":
            waited(lambda: len(place.objects(f"{run.folder}/peers/")) == 2)
        else:
            for rank in first:
                run.launchers[rank].says(r"life 0")
        run.launchers[1].process.kill()
        run.launchers[1].code()
        assert run.launchers[0].code() == 1
        assert "rank 1 (worker-0) sent no heartbeat for 15 s" in run.launchers[0].text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_node_and_is_reported(place: Place, tmp_path: Path, number: signal.Signals) -> None:
    with nodes(place, tmp_path, gang(), f"signal-{number.name.lower()}") as run:
        start(run, "0:wait;1:wait;2:wait")
        for started in run.launchers.values():
            started.says("life 0")
        run.launchers[1].process.send_signal(number)
        assert run.codes() == [128 + number] * 3
        assert f"rank 1 (worker-0) failed with {number.name}" in run.launchers[2].text


def test_a_signal_while_waiting_ends_the_wait(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=2), "signal-waiting") as run:
        start(run, "0:0;1:0", 0)
        waited(lambda: len(place.objects(f"{run.folder}/peers/")) == 1)
        run.launchers[0].process.terminate()
        assert run.codes() == [143]


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
away = "import os, time; os.setsid(); print(os.getpid(), flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", away])
print("stubborn", flush=True)
time.sleep(600)
"""


def test_no_process_outlives_the_launcher(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, gang(nodes=1), "stubborn") as run:
        run.script(STUBBORN)
        run.changes = {"command": ["train.py"]}
        run.start(TRAINYARD_GRACE_SECONDS="0.5")
        grandchild = int(run.launchers[0].says(r"\[0\] (\d+)")[1])
        run.launchers[0].says("stubborn")
        run.launchers[0].process.terminate()
        assert run.codes() == [143]
        waited(lambda: not Path(f"/proc/{grandchild}").exists())
