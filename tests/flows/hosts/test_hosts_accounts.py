# SPDX-License-Identifier: Apache-2.0
"""Nodes are the same for any account that runs the cloud, and there can be many of them."""

import json

from localcloud.control import Cloud
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.counts import wanted
from tests.support.network_world import Network, egress, ingress

BLOCK = "10.0.1.0/24"


_PINNED = """
here = peers(2)
if os.environ['NODE_RANK'] == '0':
    server = socket.create_server((here[0], 0))
    port = server.getsockname()[1]
    tell('serves', 5000 <= port <= 5031)
    tell('served', server.accept()[1][0])
else:
    # Its number is not told: the rule lets 32 of them through, and only one answers.
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        for port in range(5000, 5032):
            try: socket.create_connection((here[0], port), timeout=20).close()
            except OSError: continue
            tell('reached')
            raise SystemExit
"""
_LAUNCH = {"ports": {"data": {"range": [5000, 5031], "listens": True, "pinned": "kernel-range"}}}


def test_hosts_work_for_an_account_without_privileges(cloud_of_nobody: Cloud) -> None:
    """The port range of nodes is set in the kernel if their launcher has no library that keeps to it."""
    world = World(Clients(cloud_of_nobody))
    network = Network(world)
    subnet = network.subnet(BLOCK, [ingress("tcp", BLOCK, 5000, 5031)], [egress("tcp", BLOCK)])
    variables = {"TRAINYARD_LAUNCH": json.dumps(_LAUNCH), "TRAINYARD_PIN_LIBRARY": ""}
    run = network.cluster(_PINNED, subnet, 2, **variables)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert sorted(world.lines(run)) == ["reached", "served 10.0.1.3", "serves True"]
    seen = network.evidence(run)
    assert (seen["enforced"], seen["reason"]) == (True, "")
    assert sum(rule["connections"] for rule in seen["rules"] if rule["direction"] == "ingress") >= 1


def test_many_nodes_start_and_all_reach_the_first(cloud: Cloud) -> None:
    count = wanted(sample=6, full=64)
    world = World(Clients(cloud))
    network = Network(world)
    subnet = network.subnet(BLOCK, [ingress("tcp", BLOCK, 5000)], [egress("tcp", BLOCK)])
    script = """
count = int(os.environ['NODE_COUNT'])
if os.environ['NODE_RANK'] == '0':
    server = socket.create_server(('', 5000), backlog=count)
    tell('met', len({server.accept()[1][0] for _ in range(count - 1)}))
else:
    reach(peers(1)[0], 5000, seconds=240)
"""
    run = network.cluster(script, subnet, count)
    assert world.finished(run, 300).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert world.lines(run) == [f"met {count - 1}"]
    assert len({node["address"] for node in network.evidence(run)["nodes"]}) == count
