# SPDX-License-Identifier: Apache-2.0
"""Elastic Horovod on separate hosts under the planned rules only: a worker fails and joins again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localcloud.environments.find import MissingEnvironment, find_environment
from schemas.model import PortRange, Retry, Role
from tests.support.field import Field
from tests.support.nodes import planned

CODE = Path(__file__).with_name("elastic")


@pytest.mark.torture
def test_a_failed_worker_rejoins_through_the_planned_ports(field: Field) -> None:
    environment = find_environment("horovod-pytorch")
    if isinstance(environment, MissingEnvironment):
        pytest.skip(f"not rehearsed: the environment {environment.name}: {environment.reason}; {environment.remedy}")
    spec = planned(
        "horovod", {"main": 1, "worker": Role(2, retry=Retry(1))}, strategy="pytorch", command="train.py",
        options={"elastic": True, "minNodes": 2}, ports={"data": PortRange(30000, 30511)},
    )  # fmt: skip
    with field.run(spec, CODE, environment, FALLS="1.0@3", WAITS_FOR="3", HOROVOD_GLOO_TIMEOUT_SECONDS="120") as run:
        run.succeeds()
        said = ["\n".join(run.lines(rank)) for rank in range(3)]
        assert [len(set(re.findall(r" pid (\d+)", text))) for text in said] == [1, 2, 1], said
        assert ["done 24 in 3 epochs, world 3" in text for text in said] == [True] * 3, said
        # It may have joined again before the others have continued without it.
        assert re.search(r"world 2: \d processes on nodes 0, 2.*gone: 1", said[0]), said[0]
        assert run.dropped() == set(), "nothing was asked for that the plan does not open"
