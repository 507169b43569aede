# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel on several nodes, as tutorials write it: started by torchrun, snapshots beside the script."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class RandomPoints(Dataset):
    def __init__(self, count):
        self.rows = [(torch.rand(20), torch.rand(1)) for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


class Trainer:
    def __init__(self, model, loader, save_every, snapshot):
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.rank = int(os.environ["RANK"])
        self.loader, self.save_every, self.snapshot = loader, save_every, snapshot
        self.model, self.epochs_run = model, 0
        if os.path.exists(snapshot):
            kept = torch.load(snapshot)
            self.model.load_state_dict(kept["MODEL_STATE"])
            self.epochs_run = kept["EPOCHS_RUN"]
            print(f"resuming training from the snapshot at epoch {self.epochs_run}")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.model = DistributedDataParallel(self.model)

    def train(self, epochs):
        for epoch in range(self.epochs_run, epochs):
            self.loader.sampler.set_epoch(epoch)
            for source, target in self.loader:
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.model(source), target)
                loss.backward()
                self.optimizer.step()
            print(f"[rank {self.rank}] epoch {epoch} | batches {len(self.loader)} | loss {loss.item():.4f}")
            if self.local_rank == 0 and epoch % self.save_every == 0:
                torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch}, self.snapshot)


def main(epochs, save_every, batch_size):
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    points = RandomPoints(2048)
    loader = DataLoader(points, batch_size=batch_size, shuffle=False, sampler=DistributedSampler(points))
    Trainer(nn.Linear(20, 1), loader, save_every, "snapshot.pt").train(epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="simple distributed training job")
    parser.add_argument("total_epochs", type=int)
    parser.add_argument("save_every", type=int)
    parser.add_argument("--batch_size", type=int, default=32)
    arguments = parser.parse_args()
    main(arguments.total_epochs, arguments.save_every, arguments.batch_size)
