# SPDX-License-Identifier: Apache-2.0
"""Gangs that really hang in a collective operation are ended, although their threads and sockets are still active."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from launcher import exits
from tests.support.counts import wanted
from tests.support.field import Field
from tests.support.framework_examples import EXAMPLES

LIMIT = "12"
PYTORCH = """
import time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
tensor, rank = torch.ones(1000), dist.get_rank()
dist.all_reduce(tensor)
print("rank", rank, "comes to the second reduction", flush=True)
if rank == 1:
    time.sleep(600)
dist.all_reduce(tensor)
"""
# Here, Horovod prints its warning every few seconds; by default it does every minute.
HOROVOD = """
import os, threading, time
os.environ["HOROVOD_STALL_CHECK_TIME_SECONDS"] = "4"
# Importing takes long here, and a machine on which much else goes on lets a rank use little of a core.
begun = threading.Event()
threading.Thread(target=lambda: [print("begins", flush=True) for _ in iter(lambda: begun.wait(1), True)]).start()
import torch
import horovod.torch as hvd
hvd.init()
hvd.allreduce(torch.ones(1000), name="first")
begun.set()
print("rank", hvd.rank(), "comes to the second reduction", flush=True)
if hvd.rank() == 1:
    time.sleep(600)
hvd.allreduce(torch.ones(1000), name="second")
"""
TENSORFLOW = """
import json, os, time
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
rank = json.loads(os.environ["TRAINYARD_LAUNCH"])["rank"]
@tf.function
def step():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones(10)))
step()
print("rank", rank, "comes to the second reduction", flush=True)
if rank == 1:
    time.sleep(600)
step()
"""
# Horovod, which communicates while it hangs, is the hardest to detect. The others run in `make torture`.
HANGS = {"pytorch": PYTORCH, "horovod-pytorch": HOROVOD, "tensorflow": TENSORFLOW}


@pytest.mark.parametrize("name", [name for name in HANGS if wanted(0, 1) or name == "horovod-pytorch"])
def test_a_hanging_rank_ends_the_run_with_each_ranks_last_line(field: Field, tmp_path: Path, name: str) -> None:
    example = EXAMPLES[name]
    (tmp_path / "train.py").write_text(HANGS[name])
    job = replace(example.job(2), command="train.py")
    with field.run(job, tmp_path, example.environment(), TRAINYARD_STALL_SECONDS=LIMIT) as run:
        assert run.finished() == ["FAILED", "FAILED"]
        for rank in (0, 1):
            told = run.status(rank)
            assert (told["code"], told["reason"].partition(":")[0]) == (exits.STALLED, "stalled"), run.printed()
            assert "network use on any rank for 12 s" in told["reason"]
            last = f"rank {rank} ({('main', 'worker')[rank]}-0) printed last: rank {rank} comes to the second reduction"
            assert last in run.printed(), run.printed()
            where = told["stacks"][-1]["where"]
            sleeps = HANGS[name].splitlines().index("    time.sleep(600)") + 1
            if rank:
                assert (where["file"], where["line"]) == ("train.py", sleeps), run.printed()
            elif name != "horovod-pytorch":  # which polls, so that its stack cannot be read without py-spy
                assert (where["file"], where["line"] > sleeps) == ("train.py", True), run.printed()
