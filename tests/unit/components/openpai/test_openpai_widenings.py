# SPDX-License-Identifier: Apache-2.0
"""Random jobs of OpenPAI: a plugin or a right more is in the review, and what only reads differently shows nothing.

A stack grants nothing on OpenPAI, whose administrators do. It says as whom it acts, and which plugins of the
runtime its tasks have. The local cluster has no such plugins, so no call of it can be the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from components.platform.review import Snapshot
from tests.support.counts import FIRST, wanted
from tests.support.reviews import resource, sentences

PLUGINS = ("ssh", "teamwise_storage", "tensorboard", "cmd", "nfs")
GRANTS = tuple(
    {"who": who, "does": does, "what": what, "target": target}
    for who, does, what in (("users", "submit", "jobs"), ("runs", "read", "storages"), ("runs", "write", "storages"))
    for target in ("default", "prod", "confignfs")
)
JOBS = ("cifar10", "digits")


def side(plugins: Mapping[str, Sequence[str]], grants: Sequence[Mapping[str, str]], **extras: Any) -> Snapshot:
    runs = tuple(
        resource(
            "trainyard:index:Run", f"{job}/base", platform="openpai",
            protocol={"extras": {"com.microsoft.pai.runtimeplugin": [{"plugin": one} for one in named], **extras}},
        )
        for job, named in plugins.items()
    )  # fmt: skip
    plan = {
        "cluster": {"uri": "https://pai.example.com", "user": "bot"},
        "access": {"grants": [dict(one) for one in grants]},
    }
    return Snapshot("vision-dev", "openpai", plan, runs)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + wanted(sample=30, full=300)))
def test_a_plugin_or_a_right_more_is_said_and_another_order_is_not(seed: int) -> None:
    chance = random.Random(seed)
    plugins = {job: chance.sample(PLUGINS, chance.randint(0, 4)) for job in JOBS}
    grants = chance.sample(GRANTS, chance.randint(0, 8))
    before = side(plugins, grants)
    job = chance.choice(JOBS)
    more = chance.choice([one for one in PLUGINS if one not in plugins[job]])
    assert sentences(before, side({**plugins, job: [*plugins[job], more]}, grants)) == [
        f"tasks of the job {job} may have the plugin {more}"
    ]
    grant = chance.choice([one for one in GRANTS if one not in grants])
    (said,) = sentences(before, side(plugins, [*grants, grant]))
    assert grant["does"] in said
    assert grant["target"] in said

    shuffled = {name: chance.sample(plugins[name], len(plugins[name])) * 2 for name in reversed(JOBS)}
    assert sentences(before, side(shuffled, chance.sample(grants, len(grants)) * 2, gangAllocation=True)) == []
