# SPDX-License-Identifier: Apache-2.0
"""Digits with Horovod and PyTorch. The digits are drawn here, seven segments each, so that nothing is downloaded."""

import argparse

import horovod.torch as hvd
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

# Which of the seven segments light up for each digit.
SEGMENTS = [
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
]


def digits(count, seed):
    chance = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=chance)
    lit = torch.tensor([[float(segment) for segment in digit] for digit in SEGMENTS])[labels]
    return TensorDataset(lit + 0.3 * torch.randn(lit.shape, generator=chance), labels)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(7, 50), nn.Linear(50, 10)

    def forward(self, rows):
        return nn.functional.log_softmax(self.second(torch.relu(self.first(rows))), dim=1)


def main():
    parser = argparse.ArgumentParser(description="MNIST-like digits with Horovod")
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.05)
    args = parser.parse_args()

    hvd.init()
    torch.manual_seed(42)
    torch.set_num_threads(1)

    train, test = digits(4096, 1), digits(512, 2)
    sampler = DistributedSampler(train, num_replicas=hvd.size(), rank=hvd.rank())
    loader = DataLoader(train, batch_size=args.batch_size, sampler=sampler)

    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

    for epoch in range(1, args.epochs + 1):
        model.train()
        sampler.set_epoch(epoch)
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(model(rows), labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(test.tensors[0]).argmax(dim=1) == test.tensors[1]).float().mean()
        accuracy = hvd.allreduce(right, name="accuracy").item()
        if hvd.rank() == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {accuracy:.2%} on {hvd.size()} ranks", flush=True)
            torch.save(model.state_dict(), f"checkpoint-{epoch}.pth.tar")


if __name__ == "__main__":
    main()
