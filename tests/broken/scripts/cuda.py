import torch
import torch.distributed as dist

dist.init_process_group(backend="nccl")
model = torch.nn.Linear(2, 2).cuda()
