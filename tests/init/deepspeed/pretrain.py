# SPDX-License-Identifier: Apache-2.0
"""deepspeed --num_nodes 2 --num_gpus 8 pretrain.py --steps 100"""

import argparse

import deepspeed
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--local_rank", type=int, default=-1)
parsed = parser.parse_args()
engine, *_ = deepspeed.initialize(model=torch.nn.Linear(4, 4), config={"train_batch_size": 16})
for _ in range(parsed.steps):
    engine.backward(engine(torch.rand(1, 4)).sum())
    engine.step()
