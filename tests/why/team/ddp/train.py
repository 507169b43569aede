# SPDX-License-Identifier: Apache-2.0
"""Ranks of PyTorch that add tensors over gloo in each step. In the fourth step, one rank does what it is told."""

from __future__ import annotations

import argparse
import datetime
import os
import threading
import time

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
STEP_OF_THE_DEED, PAUSE = 4, 0.1


def evaluate(name: str, says: str) -> None:
    """What a victim does in place of the step that the others are in."""
    if name == "sleep":
        time.sleep(900)
    elif name == "lock":
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    elif name == "spin":
        while True:
            pass
    elif name == "raise":
        raise ValueError(says)
    elif name == "leave":
        os._exit(0)  # otherwise gloo's threads may abort the process, which is then no end with 0
    elif name == "mismatch":
        dist.all_reduce(torch.ones(7))
    elif not name.startswith("interface="):
        raise SystemExit(f"nobody knows how to {name}")


def add_tensors(number: int) -> float:
    tensor = torch.full((1000,), float(number))
    dist.all_reduce(tensor)
    return tensor[0].item()


parser = argparse.ArgumentParser()
parser.add_argument("--victim", type=int, default=-1)
parser.add_argument("--does", default="nothing")
parser.add_argument("--says", default="")
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--timeout", type=float, default=1800)
parser.add_argument("--case", default="")
arguments = parser.parse_args()
if arguments.victim in (-1, RANK) and arguments.does.startswith("interface="):
    os.environ["GLOO_SOCKET_IFNAME"] = arguments.does.partition("=")[2]
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=arguments.timeout))
for step in range(1, arguments.steps + 1):
    total = add_tensors(RANK + step)
    print(f"rank {RANK} of {dist.get_world_size()} step {step} total {total}", flush=True)
    if step == STEP_OF_THE_DEED and arguments.victim == RANK:
        evaluate(arguments.does, arguments.says)
    time.sleep(PAUSE)
