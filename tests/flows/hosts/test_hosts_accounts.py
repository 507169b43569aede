# SPDX-License-Identifier: Apache-2.0
"""Nodes are the same hosts whoever runs the cloud, and there can be many of them."""

from pathlib import Path

from localcloud.control import Cloud
from tests.cloud_fixture import Clients
from tests.counts import wanted
from tests.flows.cloud_world import World
from tests.flows.hosts.network_world import Network, egress, ingress

BLOCK = "10.0.1.0/24"


_PINNED = """
if 'TRAINYARD_NODE_ADDRESS' in os.environ: raise SystemExit('this is no namespace: the machine must be left alone')
here = peers(2)
with open('/proc/sys/net/ipv4/ip_local_port_range', 'w') as range_: range_.write('5000 5007')
if os.environ['NODE_RANK'] == '0':
    server = socket.create_server((here[0], 0))
    with open('port.new', 'w') as file: file.write(str(server.getsockname()[1]))
    os.replace('port.new', os.path.join(os.environ['SHARED'], 'port'))
    tell('served', server.accept()[1][0])
else:
    told = os.path.join(os.environ['SHARED'], 'port')
    while not os.path.exists(told): time.sleep(0.01)
    port = int(open(told).read())
    reach(here[0], port)
    tell('reached', 5000 <= port <= 5007)
"""


def test_an_account_without_any_privilege_has_hosts_too(cloud_of_nobody: Cloud, tmp_path: Path) -> None:
    world = World(Clients(cloud_of_nobody))
    network = Network(world)
    subnet = network.subnet(BLOCK, [ingress("tcp", BLOCK, 5000, 5007)], [egress("tcp", BLOCK)])
    run = network.cluster(_PINNED, subnet, 2, SHARED=str(tmp_path))
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    assert sorted(world.lines(run)) == ["reached True", "served 10.0.1.3"]
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
