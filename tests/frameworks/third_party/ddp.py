# SPDX-License-Identifier: Apache-2.0
"""A typical training script. It reads torch.distributed's variables, and gets two folders as arguments."""

import argparse
import json
import logging
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--loading-seconds", type=float, default=0.0, help="what reading a batch is to take")
    parser.add_argument("--resume-dir", default="checkpoints")
    parser.add_argument("--out", default="out")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    logging.basicConfig(filename=f"train-{rank}.log", level=logging.INFO, format="%(message)s")

    # After a restart the gradients of the ranks are summed in another order; with doubles the result is the same.
    torch.set_default_dtype(torch.float64)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(960, 16, generator=generator)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=16, sampler=sampler)
    torch.manual_seed(2)
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)

    latest, start = os.path.join(args.resume_dir, "latest.pt"), 0
    if os.path.exists(latest):
        state = torch.load(latest)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"]
        print(f"rank {rank} resumes after epoch {start}", flush=True)
    for epoch in range(start, args.epochs):
        sampler.set_epoch(epoch)
        for number, (batch, target) in enumerate(loader):
            logging.info("epoch %d batch %d", epoch + 1, number)
            time.sleep(args.loading_seconds)
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(batch), target)
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch + 1} loss {total.item()!r}", flush=True)
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}
            torch.save(state, latest + ".new")
            os.replace(latest + ".new", latest)
    if rank == 0:
        with open(os.path.join(args.out, "final.json"), "w") as file:
            json.dump({"loss": total.item()}, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
