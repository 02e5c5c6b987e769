"""Test of the logger of PyTorch Lightning, in a training of the real library."""

from __future__ import annotations

import pytest
import torch

import grove
from tests.helpers.extras import of_extra
from tests.webapp.client.conftest import tracked
from webapp.client import Grove

of_extra("pytorch_lightning", "peers")
import pytorch_lightning as lightning  # noqa: E402

pytestmark = pytest.mark.large


class Tiny(lightning.LightningModule):
    def __init__(self, rate=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        loss = self.layer(batch).square().mean()
        self.log("train/loss", loss)
        return loss

    def test_step(self, batch, index):
        self.log("test/loss", 0.25)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def test_a_training_of_lightning_is_logged(here, tmp_path):
    from grove.integrations.lightning import GroveLogger

    logger = GroveLogger(id="lightning", project="Oaks")
    trainer = lightning.Trainer(
        default_root_dir=tmp_path, max_steps=3, logger=logger, log_every_n_steps=1,
        accelerator="cpu", enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )  # fmt: skip
    data = torch.utils.data.DataLoader(torch.ones(6, 1), batch_size=1)
    model = Tiny(rate=0.5)
    trainer.fit(model, data)
    trainer.test(model, data, verbose=False)
    grove.finish()
    run = tracked("lightning")
    assert run.state == "finished" and run.tracking.config["rate"] == 0.5
    with Grove(here.address, here.token) as client:
        assert client.points(str(run.pk), "logged.train~1loss").step == [0, 1, 2]
        assert client.points(str(run.pk), "logged.test~1loss").value == [0.25]
