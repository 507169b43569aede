# SPDX-License-Identifier: Apache-2.0
"""The cluster in TensorFlow's variables, for strategies that have one."""

import json

from launcher.document import read_launch
from launcher.frameworks import tensorflow
from tests.support.examples import plan


def values(example: str, addresses: tuple[str, ...], rank: int = 0) -> dict[str, str]:
    (job,) = plan(example).jobs.values()
    launch = read_launch({"TRAINYARD_LAUNCH": json.dumps(dict(job.runs["base"].nodes[rank].launch))})
    return dict(tensorflow.values(launch, addresses))


def test_a_strategy_on_one_node_has_no_cluster() -> None:
    """A rehearsal found it: its launcher asked for ports that the strategy does not have."""
    assert values("oci-tensorflow-mirrored", ("10.0.0.2",)) == {}


def test_workers_among_themselves_have_no_chief_and_the_first_leads() -> None:
    """As Keras' tutorial counts them: its scripts take `worker` 0 for the one that saves."""
    addresses = ("10.0.0.2", "10.0.0.3", "10.0.0.4")
    for rank in range(len(addresses)):
        told = json.loads(values("oci-tensorflow-multi-worker", addresses, rank)["tf_config"])
        assert told["cluster"] == {"worker": [f"{one}:12400" for one in addresses]}
        assert told["task"] == {"type": "worker", "index": rank}


def test_parameter_servers_are_led_by_a_chief() -> None:
    addresses = tuple(f"10.0.0.{host}" for host in range(2, 8))
    told = json.loads(values("oci-tensorflow-parameter-server", addresses)["tf_config"])
    assert {task: len(found) for task, found in told["cluster"].items()} == {"chief": 1, "worker": 3, "ps": 2}
    assert told["task"] == {"type": "chief", "index": 0}
    last = json.loads(values("oci-tensorflow-parameter-server", addresses, 5)["tf_config"])
    assert last["cluster"] == told["cluster"]
    assert last["task"] == {"type": "ps", "index": 1}
