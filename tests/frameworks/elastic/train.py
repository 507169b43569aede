# SPDX-License-Identifier: Apache-2.0
"""Elastic training whose every step is counted: said is who took it, in which world, and what was committed.

`FALLS` names lives of nodes that do not survive the second epoch in a world of so many processes (`rank.life@size`):
each kills itself there, or with `HANGS` waits for somebody to end it. Whoever is left trains on; with `WAITS_FOR` it is
not over before so many processes are there. With `HOLDS` nobody joins, or ends before there is a file `go`.
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
            # The mean of what all give is one, however many they are: in the end the sum is the number of steps.
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
    # Said before, as it ends by going somewhere else when somebody wants to join; `save` lets nobody join.
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
