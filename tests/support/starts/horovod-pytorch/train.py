# SPDX-License-Identifier: Apache-2.0
"""Horovod's DistributedOptimizer with PyTorch."""

import horovod.torch as hvd
import torch
from steps import COLUMNS, RATE, Steps, batch, here


def main() -> None:
    steps = Steps()
    hvd.init()
    here(hvd.rank(), hvd.size())
    torch.set_default_dtype(torch.float64)
    layer = torch.nn.Linear(COLUMNS, 1, bias=False)
    layer.weight.data = torch.tensor([steps.weights])
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(layer.parameters(), lr=RATE), named_parameters=layer.named_parameters()
    )
    for step in steps.left():
        rows, sums = map(torch.tensor, batch(step, hvd.rank()))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(layer(rows), sums)
        loss.backward()
        optimizer.step()
        mean = hvd.allreduce(loss.detach(), name="loss").item()
        steps.after(step, mean, layer.weight[0].tolist(), hvd.rank(), world=hvd.size())


if __name__ == "__main__":
    main()
