"""Ray Train with PyTorch: a TorchTrainer that reports metrics and checkpoints."""

import os
import tempfile

import ray.train.torch
import torch
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer
from torch.nn import CrossEntropyLoss
from torch.optim import Adam
from torch.utils.data import DataLoader, TensorDataset


def train_func(config):
    inputs = torch.randn(512, 16)
    data = TensorDataset(inputs, (inputs.sum(dim=1) > 0).long())
    loader = ray.train.torch.prepare_data_loader(DataLoader(data, batch_size=config["batch_size"], shuffle=True))
    model = ray.train.torch.prepare_model(
        torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    )
    optimizer, criterion = Adam(model.parameters(), lr=config["lr"]), CrossEntropyLoss()
    for epoch in range(config["epochs"]):
        if ray.train.get_context().get_world_size() > 1:
            loader.sampler.set_epoch(epoch)
        for features, labels in loader:
            loss = criterion(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        metrics = {"loss": loss.item(), "epoch": epoch}
        with tempfile.TemporaryDirectory() as temp_checkpoint_dir:
            checkpoint = None
            if ray.train.get_context().get_world_rank() == 0:
                torch.save(model.state_dict(), os.path.join(temp_checkpoint_dir, "model.pt"))
                checkpoint = Checkpoint.from_directory(temp_checkpoint_dir)
            ray.train.report(metrics, checkpoint=checkpoint)
        if ray.train.get_context().get_world_rank() == 0:
            print(metrics)


if __name__ == "__main__":
    trainer = TorchTrainer(
        train_func,
        train_loop_config={"lr": 1e-3, "batch_size": 64, "epochs": 2},
        scaling_config=ScalingConfig(num_workers=2, use_gpu=False),
        run_config=RunConfig(name="first", storage_path="/mnt/cluster_storage"),
    )
    result = trainer.fit()
    print("Training result:", result.metrics, result.checkpoint)
