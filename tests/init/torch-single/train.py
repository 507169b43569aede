# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    images, labels = torch.rand(16, 8, 8), torch.randint(0, 10, (16,))
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
