# SPDX-License-Identifier: Apache-2.0
"""Real Dask through the launcher: the script is a client beside the scheduler, workers serve and end with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from components.platform.stack_requests import new_request_token, stack_request_name
from schemas.model import Job, PortRange, Retry, Role
from tests.support.nodes import BUCKET, Nodes, Place, block, nodes, planned, waited
from tests.support.waiting import eventually

pytest.importorskip("distributed", reason="Dask is not in this environment")

CLIENT = """
import os
from dask.distributed import Client

def work(number):
    return number * number

def wait_for_file(name):
    import time
    deadline = time.monotonic() + 300
    while not os.path.exists(name) and time.monotonic() < deadline:
        time.sleep(0.05)
    return 0

if __name__ == "__main__":
    with Client(os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        print("workers", len(workers), sorted(workers), flush=True)
        print("sum", sum(client.gather(client.map(work, range(10)))), flush=True)
        with open(os.environ["TRAINYARD_PROGRESS"], "a") as progress:
            progress.write('{"step": 1}\\n')
        for folder in ("OUTPUT", "CHECKPOINTS"):
            with open(os.environ[f"TRAINYARD_{folder}"] + "/last", "w") as last:
                last.write("the last word")
        if os.environ.get("LONG"):
            client.submit(wait_for_file, os.path.abspath("go-on")).result()
            print("again", sum(client.gather(client.map(work, range(100, 110)))), flush=True)
"""


def cluster(processes: int = 1, nanny: bool = False, retries: int = 0) -> Job:
    first, last = block(2 + 2 * processes)
    ranges = {name: PortRange(first + place, first + place) for place, name in enumerate(("scheduler", "dashboard"))}
    # Every node has its own address, so all may use the same ranges.
    ranges["worker"] = PortRange(first + 2, first + 1 + processes)
    ranges["nanny"] = PortRange(first + 2 + processes, last)
    roles = {"scheduler": Role(1), "worker": Role(2, retry=Retry(retries))}
    return planned("dask", roles, ports=ranges, options={"workers": processes, "nanny": nanny})


@pytest.mark.parametrize(("processes", "nanny"), [(1, False), (2, True)])
def test_the_script_starts_after_all_workers_have_joined(
    place: Place, tmp_path: Path, processes: int, nanny: bool
) -> None:
    with nodes(place, tmp_path, cluster(processes, nanny), f"dask-{processes}") as run:
        run.script(CLIENT)
        assert run.start().codes() == [0, 0, 0]
        told = run.launchers[0].text
        assert f"workers {2 * processes} " in told
        assert "sum 285" in told
        assert {place.status(run, rank)["state"] for rank in (1, 2)} == {"stopped"}
        # Dask's scheduler itself logs one now and then when workers close their side first.
        assert not [line for line in run.shown().splitlines() if "Traceback" in line and ".service]" not in line]
        assert place.content(f"{run.folder}/output/last") == b"the last word"
        assert place.content(f"train/{run.name}/checkpoints/last") == b"the last word"
        assert place.status(run, 0)["progress"] == {"step": 1}


def test_a_task_says_where_it_hangs_and_a_failed_worker_restarts_alone(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, cluster(retries=1), "dask-worker-lost") as run:
        run.script(CLIENT)
        run.start(LONG="1")
        run.launchers[0].says("sum 285")
        line = CLIENT[: CLIENT.index("sleep(")].count("\n") + 1
        assert _place_of_task(place, run) == ("wait_for_file", "train.py", line)
        _kill_service(run, 2)
        run.launchers[2].says(r"SIGKILL \(code 137\), a failure of the kind unknown: retry 1 of 1")
        waited(lambda: len(re.findall("Registered to:", run.launchers[2].text)) == 2)
        (tmp_path / "go-on").touch()
        assert run.codes() == [0, 0, 0]
        assert "again" in run.launchers[0].text


def test_a_script_that_fails_fails_the_run(place: Place, tmp_path: Path) -> None:
    with nodes(place, tmp_path, cluster(), "dask-fails") as run:
        run.script("raise SystemExit(5)")
        assert run.start().codes() == [5, 5, 5]
        assert "rank 0 (scheduler-0) failed with code 5" in run.launchers[1].text


def _place_of_task(place: Place, run: Nodes) -> tuple[str, str, int]:
    """Where a worker is that has a task. They are asked again until one is old enough to answer."""

    def ask() -> list[tuple[str, str, int]]:
        name = f"{run.folder}/{stack_request_name(new_request_token())}"
        place.world.clients.storage.put_object(place.namespace, BUCKET, name, b"")
        rows = [row for rank in (1, 2) for row in place.status(run, rank)["stacks"] or ()]
        return [(row["where"]["function"], row["where"]["file"], row["where"]["line"]) for row in rows if row["where"]]

    return eventually(ask, longest_pause=1.0)[0]


def _kill_service(run: Nodes, rank: int) -> None:
    import os
    import signal

    launcher = run.launchers[rank].process.pid
    (child,) = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    os.kill(int(child), signal.SIGKILL)
