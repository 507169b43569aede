"""An autoencoder with Lightning's Trainer, on several nodes."""

import os

import lightning as L
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class LitAutoEncoder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64))

    def training_step(self, batch, batch_idx):
        (x,) = batch
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    L.seed_everything(0)
    train_loader = DataLoader(TensorDataset(torch.rand(512, 64)), batch_size=16, shuffle=True)
    trainer = L.Trainer(
        max_epochs=2, accelerator="auto", devices=1, num_nodes=2, strategy="ddp", default_root_dir=os.getcwd()
    )
    trainer.fit(model=LitAutoEncoder(), train_dataloaders=train_loader)
