# SPDX-License-Identifier: Apache-2.0
"""A local OpenPAI, on which tests start runs through our provider."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from components.openpai.client.cluster_session import Session
from components.openpai.client.jobs import RunId
from components.openpai.client.runs import OpenPaiRuns
from components.platform.calls import call_of
from components.platform.client import Where
from components.platform.status import WantedRuns
from components.platform.values import Properties
from localcloud.control import Cloud
from localcloud.openpai.accounts import read_accounts
from provider.plugin import Trainyard
from tests.support.cloud_fixture import local_cloud
from tests.support.openpai_world import USER, OpenPaiWorld, job
from tests.support.provider_client import EngineSide, Resource, engine_side
from trainyard.runs.run_looks import Look, look_for

RUN = "trainyard:index:Run"


@dataclass(frozen=True)
class RunsWorld:
    cloud: Cloud
    engine: EngineSide
    tokens: Mapping[str, str]

    def inputs(self, *commands: str, instances: int = 1, role: Properties | None = None, **more: Any) -> Properties:
        protocol = {
            "protocolVersion": 2,
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.11"}],
            "taskRoles": {
                "worker": {
                    "instances": instances,
                    "dockerImage": "image",
                    "resourcePerInstance": {"cpu": 1, "memoryMB": 256, "gpu": 0},
                    "commands": list(commands),
                    **(role or {}),
                }
            },
            **more.pop("protocol", {}),
        }
        return {
            "platform": "openpai",
            "cluster": {"uri": self.cloud.endpoint, "user": "deployer", "virtualCluster": "default"},
            "token": self.tokens["deployer"],
            "displayName": "vision-dev-train-first",
            "tags": {"stack": "vision-dev", "job": "train", "run": "first"},
            "nodes": [{"name": f"worker-{rank}", "role": "worker", "rank": rank} for rank in range(instances)],
            "protocol": protocol,
            "until": "finished",
            "timeouts": {"access": 0.05, "started": 5, "finished": 5},
            **more,
        }

    def platform(self, user: str = "deployer") -> OpenPaiRuns:
        cluster = {"uri": self.cloud.endpoint, "user": user}
        return OpenPaiRuns(Session.of({"cluster": cluster, "token": self.tokens[user]}, {}))

    def job(self, resource: Resource) -> Mapping[str, Any]:
        run = RunId.parse(resource.id)
        assert run is not None
        detail = self.platform().job(call_of("test", lambda line: None), run.user, run.job)
        assert detail is not None
        return detail

    def look(self, run: str) -> Look:
        config = {"trainyard:platform": "openpai"}
        return look_for(Where(config, self.cloud, None, print), WantedRuns("vision-dev", "train", run))


def run_inputs(world: OpenPaiWorld, name: str, *commands: str, **more: Any) -> Properties:
    """The inputs of a run of one task, started by a user without further rights. `more` replaces some of them."""
    protocol = {key: value for key, value in job(name, *commands).items() if key != "name"}
    return {
        "platform": "openpai",
        "cluster": {"uri": world.cloud.endpoint, "user": USER, "virtualCluster": "default"},
        "token": world.token(USER),
        "displayName": name,
        "tags": {"stack": "vision-dev", "job": "train", "run": name},
        "nodes": [{"name": "worker-0", "role": "worker", "rank": 0}],
        "protocol": protocol,
        "until": "finished",
        "timeouts": {"started": 5, "finished": 5},
        **more,
    }


@contextmanager
def openpai_engine() -> Iterator[EngineSide]:
    """The engine with our provider. Its environment has no variables of OpenPAI."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {"OPENPAI_TOKEN": "", "OPENPAI_URI": "", "OPENPAI_USER": ""}))
        engine = stack.enter_context(engine_side(Trainyard()))
        engine.configure()
        yield engine


@contextmanager
def runs_world(home: Path) -> Iterator[RunsWorld]:
    with ExitStack() as stack:
        cloud = stack.enter_context(local_cloud(home))
        engine = stack.enter_context(openpai_engine())
        yield RunsWorld(cloud, engine, read_accounts(cloud.home).tokens)
