"""Multinode training with DistributedDataParallel, as a tutorial has it:
torchrun --nnodes 2 --nproc_per_node 1 train.py --total_epochs 2"""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm


class Trainer:
    def __init__(self, model, loader, optimizer, snapshot_path):
        self.rank = int(os.environ["RANK"])
        self.local_rank = int(os.environ["LOCAL_RANK"])
        self.device = torch.device(f"cuda:{self.local_rank}" if torch.cuda.is_available() else "cpu")
        self.loader = loader
        self.optimizer = optimizer
        self.snapshot_path = snapshot_path
        self.epochs_run = 0
        model = model.to(self.device)
        if os.path.exists(snapshot_path):
            snapshot = torch.load(snapshot_path, map_location=self.device)
            model.load_state_dict(snapshot["MODEL_STATE"])
            self.epochs_run = snapshot["EPOCHS_RUN"]
            print(f"Resuming training from snapshot at epoch {self.epochs_run}")
        self.model = DDP(model)

    def run_epoch(self, epoch):
        self.loader.sampler.set_epoch(epoch)
        bar = tqdm(self.loader, desc=f"epoch {epoch}", disable=self.rank != 0)
        for source, targets in bar:
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.model(source.to(self.device)), targets.to(self.device))
            loss.backward()
            self.optimizer.step()
            bar.set_postfix(loss=f"{loss.item():.3f}")

    def train(self, epochs):
        for epoch in range(self.epochs_run, epochs):
            self.run_epoch(epoch)
            if self.rank == 0:
                torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch + 1}, self.snapshot_path)


def main(args):
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    torch.manual_seed(0)
    inputs = torch.randn(256, 64)
    data = TensorDataset(inputs, (inputs[:, 0] > 0).long())
    loader = DataLoader(data, batch_size=args.batch_size, sampler=DistributedSampler(data))
    # As large as the checkpoint of a model that people train: 149 MB.
    model = nn.Sequential(nn.Linear(64, 6000), nn.ReLU(), nn.Linear(6000, 6000), nn.ReLU(), nn.Linear(6000, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    Trainer(model, loader, optimizer, "snapshot.pt").train(args.total_epochs)
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="distributed training job")
    parser.add_argument("--total_epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32)
    main(parser.parse_args())
