"""A loop of PyTorch with Accelerate: four lines make it distributed."""

import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm


def training_function(args):
    accelerator = Accelerator()
    set_seed(42)
    inputs = torch.randn(1024, 32)
    labels = (inputs[:, :16].sum(1) > inputs[:, 16:].sum(1)).long()
    train_dataloader = DataLoader(TensorDataset(inputs, labels), shuffle=True, batch_size=args.batch_size)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = OneCycleLR(optimizer, max_lr=1e-2, epochs=args.epochs, steps_per_epoch=len(train_dataloader))
    model, optimizer, train_dataloader, scheduler = accelerator.prepare(model, optimizer, train_dataloader, scheduler)
    progress_bar = tqdm(range(args.epochs * len(train_dataloader)), disable=not accelerator.is_local_main_process)
    for epoch in range(args.epochs):
        right = count = 0
        for features, targets in train_dataloader:
            outputs = model(features)
            loss = torch.nn.functional.cross_entropy(outputs, targets)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            predictions, references = accelerator.gather_for_metrics((outputs.argmax(-1), targets))
            right += int((predictions == references).sum())
            count += len(references)
        accelerator.print(f"epoch {epoch}: accuracy {right / count:.3f}")
    accelerator.wait_for_everyone()
    accelerator.save_state("checkpoint")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    training_function(parser.parse_args())
