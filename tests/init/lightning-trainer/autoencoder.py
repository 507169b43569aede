# SPDX-License-Identifier: Apache-2.0
import lightning
import torch


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(16, 16)

    def training_step(self, batch: torch.Tensor, _: int) -> torch.Tensor:
        return (self.layer(batch) - batch).pow(2).mean()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters())


lightning.Trainer(max_epochs=1).fit(Model(), torch.utils.data.DataLoader(torch.rand(64, 16), batch_size=8))
