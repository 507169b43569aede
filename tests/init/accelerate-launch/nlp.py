# SPDX-License-Identifier: Apache-2.0
from accelerate import Accelerator
from torch import nn, optim, rand

accelerator = Accelerator()
model = nn.Linear(8, 2)
model, optimizer = accelerator.prepare(model, optim.AdamW(model.parameters()))
for _ in range(5):
    accelerator.backward(model(rand(4, 8)).sum())
    optimizer.step()
    optimizer.zero_grad()
