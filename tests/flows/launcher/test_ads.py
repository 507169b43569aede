# SPDX-License-Identifier: Apache-2.0
"""Runs on nodes of both kinds: our launcher, and one that knows only ADS's files in the bucket, as its images do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import oci
import pytest

from schemas.model import Job, PortRange, Role
from tests.support.nodes import BUCKET, Nodes, Place, Started, block, nodes, planned, waited

pytest.importorskip("distributed", reason="Dask is not in this environment")

JOB = "ocid1.datasciencejob.oc1..ads"
CLIENT = """
import os, sys
from dask.distributed import Client

if __name__ == "__main__":
    with Client(sys.argv[1] if sys.argv[1:] else os.environ["DASK_SCHEDULER_ADDRESS"]) as client:
        client.wait_for_workers(2, timeout=150)
        print("sum", sum(client.gather(client.map(abs, range(10)))), "workers",
              len(client.scheduler_info(n_workers=-1)["workers"]), flush=True)
"""


class AdsSide:
    """The part of an ADS image, with the official SDK: it writes its own file, and reads the main node's file and
    `stop`.
    """

    def __init__(self, place: Place, name: str) -> None:
        self._storage, self._namespace = place.world.clients.storage, place.namespace
        self.folder = f"ads-{name}/{JOB}"

    def write(self, name: str, content: str) -> None:
        self._storage.put_object(self._namespace, BUCKET, f"{self.folder}/{name}", content.encode())

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._storage.get_object(self._namespace, BUCKET, f"{self.folder}/{name}").data.content)
        except oci.exceptions.ServiceError as error:
            if error.status != 404:
                raise
            return None

    def awaited(self, name: str) -> dict[str, Any]:
        waited(lambda: self.read(name) is not None)
        read: dict[str, Any] = json.loads(self.read(name) or b"{}")
        return read


@contextmanager
def process(words: Sequence[str], folder: Path) -> Iterator[Started]:
    """A framework's own process, as an image of ADS starts it."""
    started = Started(
        subprocess.Popen(
            [sys.executable, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )
    )  # fmt: skip
    try:
        yield started
    except BaseException:
        print(f"--- as ADS\n{started.text}")
        raise
    finally:
        if started.process.poll() is None:
            started.process.kill()
        started.code()


def cluster(first: int) -> Job:
    ranges = {name: PortRange(first + place, first + place) for place, name in enumerate(("scheduler", "dashboard"))}
    ranges |= {"worker": PortRange(first + 2, first + 2), "nanny": PortRange(first + 3, first + 3)}
    return planned("dask", {"scheduler": Role(1), "worker": Role(2)}, ports=ranges, options={"nanny": False})


def variables(place: Place, name: str) -> dict[str, str]:
    work = f"oci://{BUCKET}@{place.namespace}/ads-{name}"
    return {"TRAINYARD_ADS_PEERS": "1", "OCI__WORK_DIR": work, "JOB_OCID": JOB}


def start(run: Nodes, *ranks: int) -> None:
    for rank in ranks:
        run.start(rank, JOB_RUN_OCID=f"ocid1.datasciencejobrun.oc1..{rank}")


def worker_words(scheduler: str, address: str, port: int) -> list[str]:
    options = ["--host", address, "--worker-port", str(port), "--no-nanny", "--no-dashboard", "--nthreads", "1"]
    return ["-m", "distributed.cli.dask_worker", scheduler, *options]


def test_a_worker_that_only_ads_announced_joins_our_scheduler(place: Place, tmp_path: Path) -> None:
    name = "ads-worker"
    first, _ = block(4)
    with nodes(place, tmp_path, cluster(first), name, variables=variables(place, name)) as run:
        run.script(CLIENT)
        side = AdsSide(place, name)
        start(run, 0, 1)
        main = side.awaited("MAIN_config.json")
        assert main["OCI__MAIN_IP"] == main["SCHEDULER_IP"] == run.address(0)
        assert main["tmpdir"] == f"oci://{BUCKET}@{place.namespace}/{side.folder}"
        assert "all 3 nodes" not in run.launchers[0].text
        side.write("WORKER_ocid1.datasciencejobrun.oc1..2_config.json", json.dumps({"OCI__WORKER_IP": "127.0.0.3"}))
        words = worker_words(f"tcp://{main['SCHEDULER_IP']}:{first}", "127.0.0.3", first + 2)
        with process(words, tmp_path):
            assert run.codes() == [0, 0]
            assert "all 3 nodes are there" in run.launchers[0].text
            assert "sum 45 workers 2" in run.launchers[0].text
            # By this file an image of ADS knows that it may end.
            assert side.read("stop") is not None


def test_our_workers_join_a_scheduler_that_only_ads_announced(place: Place, tmp_path: Path) -> None:
    name = "ads-main"
    first, _ = block(4)
    with nodes(place, tmp_path, cluster(first), name, variables=variables(place, name)) as run:
        side = AdsSide(place, name)
        start(run, 1, 2)
        for rank in (1, 2):
            found = side.awaited(f"WORKER_ocid1.datasciencejobrun.oc1..{rank}_config.json")
            assert found["OCI__WORKER_IP"] == run.address(rank)
        words = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(first), "--no-dashboard"]
        with process(words, tmp_path):
            side.write("MAIN_config.json", json.dumps({"OCI__MAIN_IP": "127.0.0.1", "SCHEDULER_IP": "127.0.0.1"}))
            run.script(CLIENT, "client.py")
            with process(["client.py", f"tcp://127.0.0.1:{first}"], tmp_path) as client:
                assert client.code() == 0
                assert "sum 45 workers 2" in client.text
            side.write("stop", "stop")
            assert run.codes() == [0, 0]
        assert {place.status(run, rank)["state"] for rank in (1, 2)} == {"stopped"}


def test_our_pytorch_rank_finds_a_main_node_that_only_ads_announced(place: Place, tmp_path: Path) -> None:
    name = "ads-pytorch"
    spec = planned("pytorch", {"main": Role(1), "worker": Role(2)}, command="python train.py")
    with nodes(place, tmp_path, spec, name, variables=variables(place, name)) as run:
        run.script("import os; print(*(os.environ[name] for name in ('MASTER_ADDR', 'RANK', 'WORLD_SIZE')))")
        side = AdsSide(place, name)
        start(run, 1)
        own = side.awaited("WORKER_ocid1.datasciencejobrun.oc1..1_config.json")
        assert own == {"OCI__WORKER_IP": run.address(1)}
        side.write("WORKER_ocid1.datasciencejobrun.oc1..2_config.json", json.dumps({"OCI__WORKER_IP": "127.0.0.3"}))
        side.write("MAIN_config.json", json.dumps({"MASTER_ADDR": "127.0.0.7"}))
        assert run.codes() == [0]
        assert "127.0.0.7 1 3" in run.launchers[1].text
        # Only the main node says that everything has ended.
        assert side.read("stop") is None
