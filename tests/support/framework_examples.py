# SPDX-License-Identifier: Apache-2.0
"""The example training programs with small arguments, their environments and roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from catalog.environments import Need
from catalog.imports import imported_modules
from localcloud.environments.find import Environment, MissingEnvironment, find_environment_for
from schemas.model import Job, PortRange
from tests.support.examples import STACKS
from tests.support.nodes import planned


@dataclass(frozen=True)
class Example:
    """A program under stacks/, and how it is started. `result`: a word that its output files contain."""

    code: str
    framework: str
    roles: Mapping[str, int]
    command: str
    result: str
    strategy: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    ports: Mapping[str, PortRange] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return STACKS / self.code

    def environment(self) -> Environment:
        """The environment in which it runs. If that is not on this machine, the test is skipped with the reason."""
        found = find_environment_for(Need(self.framework, self.strategy, imported_modules(self.folder)))
        if isinstance(found, MissingEnvironment):
            pytest.skip(f"not rehearsed: the environment {found.name}: {found.reason}; {found.remedy}")
        return found

    def job(self, nodes: int) -> Job:
        """Its job with this number of nodes. The last role gets those that the others leave."""
        last = list(self.roles)[-1]
        roles = {**self.roles, last: nodes - sum(count for name, count in self.roles.items() if name != last)}
        return planned(self.framework, roles, strategy=self.strategy, options=dict(self.options),
                       ports=dict(self.ports), command=self.command)  # fmt: skip


_CLUSTER = {"scheduler": 1, "worker": 2}
_RANKS = {"main": 1, "worker": 2}
EXAMPLES = {
    "dask": Example(
        "local", "dask", _CLUSTER, "train.py --epochs 2 --points 8000", "slope", options={"nanny": False},
        ports={"worker": PortRange(8700, 8709)},
    ),
    "dask-lightgbm": Example(
        "examples/dask-lightgbm", "dask", _CLUSTER, "train.py --rows 4000 --trees 5", "loss", options={"boosting": True}
    ),
    "dask-xgboost": Example(
        "examples/dask-xgboost", "dask", _CLUSTER, "train.py --rows 4000 --rounds 6", "loss",
        options={"boosting": True},
    ),
    "dask-sklearn": Example("examples/dask-sklearn", "dask", _CLUSTER, "search.py --candidates 4 --rows 200", "loss"),
    "dask-ml": Example("examples/dask-ml", "dask", _CLUSTER, "clusters.py --rows 3000 --passes 2", "loss"),
    "pytorch": Example("examples/pytorch-ddp", "pytorch", _RANKS, "train.py --epochs 2", "loss"),
    "accelerate": Example("examples/accelerate", "accelerate", _RANKS, "train.py --epochs 2", "loss"),
    "lightning": Example("examples/lightning", "lightning", _RANKS, "train.py --epochs 2", "loss"),
    "ray": Example("examples/ray", "ray", {"head": 1, "worker": 2}, "train.py --epochs 3", "loss"),
    "tensorflow": Example(
        "examples/tensorflow-multi-worker", "tensorflow", _RANKS, "train.py --epochs 2", "loss",
        strategy="multi-worker-mirrored",
    ),
    "tensorflow-ps": Example(
        "examples/tensorflow-parameter-server", "tensorflow", {"main": 1, "ps": 1, "worker": 1}, "train.py --epochs 2",
        "loss", strategy="parameter-server",
    ),
    "torchrun": Example(
        "examples/torchrun", "torchrun", _RANKS, "train.py --epochs 2", "loss", options={"elastic": True}
    ),
    "horovod-pytorch": Example(
        "examples/horovod-pytorch", "horovod", _RANKS, "train.py --epochs 2", "loss", strategy="pytorch",
        ports={"data": PortRange(30000, 30511)},
    ),
    "horovod-tensorflow": Example(
        "examples/horovod-tensorflow", "horovod", _RANKS, "train.py --epochs 2", "loss", strategy="tensorflow",
        ports={"data": PortRange(30000, 30511)},
    ),
}  # fmt: skip
# Example, and the planned ports that are closed: the evidence must name exactly these.
CLOSED_RULES = [
    ("accelerate", "29400"),
    ("accelerate", "29500-29563"),
    ("dask", "8786"),
    ("dask", "8700-8709"),
    ("dask-lightgbm", "8900-8963"),
    ("dask-xgboost", "8810"),
    ("dask-xgboost", "8900-8963"),
    ("lightning", "29400"),
    ("lightning", "29500-29563"),
    ("pytorch", "29400"),
    ("pytorch", "29500-29563"),
    ("ray", "6379"),
    ("ray", "10000"),
    ("ray", "10001"),
    ("ray", "10002-10101"),
    ("tensorflow", "12345"),
    ("tensorflow-ps", "12345"),
    ("torchrun", "29400"),
    ("torchrun", "29500-29563"),
    ("horovod-pytorch", "29600"),
    ("horovod-pytorch", "30000-30511"),
    ("horovod-tensorflow", "29600"),
    ("horovod-tensorflow", "30000-30511"),
]
# One rule for each framework; a sample tests one of them.
RULE_OF_EACH = (
    ("dask", "8700-8709"),
    ("dask-xgboost", "8900-8963"),
    ("pytorch", "29500-29563"),
    ("tensorflow", "12345"),
    ("ray", "10000"),
    ("horovod-pytorch", "30000-30511"),
)
