# SPDX-License-Identifier: Apache-2.0
"""Elastic training that counts every step: it prints which process made the step, in which world size, and what was
committed.

`FALLS` names lives of nodes that end in the second epoch of a world of a given size (`rank.life@size`): each kills
itself, or with `HANGS` waits until it is ended. The others continue. With `WAITS_FOR`, training does not end before
that number of processes has joined. With `HOLDS`, no process joins or ends before the file `go` exists.
"""

import os
import signal
import time

import horovod.torch as hvd
import torch

EPOCHS, BATCHES = 3, 8
ME = os.environ["HOROVOD_HOSTNAME"]


@hvd.elastic.run
def train(state: hvd.elastic.TorchState) -> None:
    print(f"world {hvd.size()} rank {hvd.rank()} pid {os.getpid()} from {state.total:.0f}", flush=True)
    while state.epoch < EPOCHS or hvd.size() < int(os.environ.get("WAITS_FOR", "0")):
        while state.epoch < EPOCHS and state.batch < BATCHES:
            fall(state)
            # Every process contributes one, so the mean is one in any world size, and the final sum is the number of
            # steps.
            state.total += hvd.allreduce(torch.ones(1), name="step").item()
            state.batch += 1
            print(f"step {state.total:.0f}", flush=True)
            if state.batch == BATCHES // 2:
                commit(state)
        if state.epoch < EPOCHS:
            state.epoch, state.batch = state.epoch + 1, 0
        time.sleep(0.05)
        commit(state)


def commit(state: hvd.elastic.TorchState) -> None:
    # Printed before the commit, because a commit raises an exception if a process wants to join; `save` does not.
    print(f"commit {state.total:.0f}", flush=True)
    if "HOLDS" in os.environ:
        state.save()
    else:
        state.commit()


def fall(state: hvd.elastic.TorchState) -> None:
    falls = f"{ME}@{hvd.size()}" in os.environ.get("FALLS", "").split() and hvd.local_rank() == 0
    if falls and state.epoch == 1 and state.batch == BATCHES // 2 + 2:
        print(f"falls at {state.total:.0f}", flush=True)
        if "HANGS" in os.environ:
            time.sleep(600)
        os.kill(os.getpid(), signal.SIGKILL)


hvd.init()
result = hvd.elastic.TorchState(model=torch.nn.Linear(1, 1), epoch=0, batch=0, total=0.0)
train(result)
while "HOLDS" in os.environ and not os.path.exists("go"):
    time.sleep(0.05)
print(f"done {result.total:.0f} in {result.epoch} epochs, world {hvd.size()} pid {os.getpid()}", flush=True)
