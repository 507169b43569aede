# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow's strategies are told of their cluster, where there is one."""

import json

from launcher.document import read
from launcher.frameworks import tensorflow
from tests.examples import plan


def values(example: str, addresses: tuple[str, ...]) -> dict[str, str]:
    (job,) = plan(example).jobs.values()
    launch = read({"TRAINYARD_LAUNCH": json.dumps(dict(job.runs["base"].nodes[0].launch))})
    return dict(tensorflow.values(launch, addresses))


def test_a_strategy_on_one_node_has_no_cluster() -> None:
    """A rehearsal found it: its launcher asked for ports that the strategy does not have."""
    assert values("oci-tensorflow-mirrored", ("10.0.0.2",)) == {}


def test_every_task_of_a_cluster_is_named_with_its_port() -> None:
    addresses = ("10.0.0.2", "10.0.0.3", "10.0.0.4")
    told = json.loads(values("oci-tensorflow-multi-worker", addresses)["tf_config"])
    assert [one for tasks in told["cluster"].values() for one in tasks] == [f"{one}:12400" for one in addresses]
    assert told["task"]["index"] == 0
