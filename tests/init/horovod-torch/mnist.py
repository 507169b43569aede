# SPDX-License-Identifier: Apache-2.0
import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(10, 2)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size()), named_parameters=model.named_parameters()
)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
