# SPDX-License-Identifier: Apache-2.0
"""Nodes are real hosts with their own addresses, and only connections that the current rules allow."""

from collections.abc import Mapping
from typing import Any

from tests.support.cloud_world import World
from tests.support.network_world import Network, egress, ingress
from tests.support.waiting import eventually

SUBNET = "10.0.1.0/24"


def _connections(evidence: Mapping[str, Any], direction: str) -> dict[int, int]:
    found: dict[int, int] = {}
    for rule in evidence["rules"]:
        if rule["direction"] == direction and rule["ports"]:
            found[rule["ports"][0]] = found.get(rule["ports"][0], 0) + rule["connections"]
    return found


_TWO = """
here = peers(2)
if os.environ['NODE_RANK'] == '0':
    open_, shut = (socket.create_server((here[0], port)) for port in (5000, 5002))
    connection, peer = open_.accept()
    tell('accepted', peer[0], connection.recv(5).decode())
    connection.recv(5)
else:
    connection = reach(here[0], 5000)
    connection.sendall(b'hello')
    try: reach(here[0], 5002, seconds=1.5)
    except TimeoutError as error: tell('not 5002')
    tell(socket.gethostname(), [line.split()[0] for line in open('/etc/hosts') if socket.gethostname() in line])
"""


def test_two_nodes_connect_only_where_a_rule_allows_it(world: World) -> None:
    network = Network(world)
    subnet = network.subnet(
        SUBNET, [ingress("tcp", SUBNET, 5000, 5001, description="data")], [egress("tcp", SUBNET)]
    )  # fmt: skip
    run = network.cluster(_TWO, subnet, 2)
    done = world.finished(run)
    said = world.lines(run)
    assert done.lifecycle_state == "SUCCEEDED", said
    assert "accepted 10.0.1.3 hello" in said
    assert "not 5002" in said
    assert f"{run.display_name}-1 ['10.0.1.3']" in said
    seen = network.evidence(run)
    assert (seen["run"], seen["enforced"], seen["reason"]) == (run.id, True, "")
    assert [(node["rank"], node["group"], node["address"]) for node in seen["nodes"]] == [
        (0, "nodes", "10.0.1.2"), (1, "nodes", "10.0.1.3"),
    ]  # fmt: skip
    (rule,) = [each for each in seen["rules"] if each["description"] == "data" and each["node"] == 0]
    assert (rule["list"], rule["index"], rule["peer"]) == (network.lists[subnet], 0, SUBNET)
    assert rule["connections"] >= 1
    flows = {(flow["direction"], flow["from"], flow["to"], flow["port"]) for flow in seen["flows"]}
    assert ("ingress", "10.0.1.3", "10.0.1.2", 5000) in flows
    assert ("egress", "10.0.1.3", "10.0.1.2", 5002) in flows, "it may leave, and is not let in"
    (dropped,) = seen["dropped"]
    assert (dropped["direction"], dropped["from"], dropped["to"], dropped["port"]) == (
        "ingress", "10.0.1.3", "10.0.1.2", 5002,
    )  # fmt: skip


_SERVER = """
server = socket.create_server(('', 6000))
tell('listening')
while True:
    connection, peer = server.accept()
    tell('from', peer[0])
    connection.close()
"""
_CLIENT = """
connection = reach(os.environ['SERVER'], 6000, seconds=float(os.environ['SECONDS']))
tell('reached from', connection.getsockname()[0])
"""


def test_an_unknown_host_name_fails_at_once(world: World) -> None:
    network = Network(world, "10.3.0.0/16")
    script = """
began = time.monotonic()
try: socket.getaddrinfo('example.invalid.name', 80)
except socket.gaierror: tell('unknown', time.monotonic() - began < 15)
tell(open('/etc/resolv.conf').read().split()[1])
"""
    run = network.run(script, network.subnet("10.3.1.0/24", [], [egress("all", "0.0.0.0/0")]))
    assert world.finished(run).lifecycle_state == "SUCCEEDED"
    assert world.lines(run) == ["unknown True", "169.254.169.254"]


def test_a_run_that_never_started_has_empty_evidence(world: World) -> None:
    network = Network(world, "10.4.0.0/16")
    second = network.cluster("pass", network.subnet("10.4.1.0/30", [], []), 4)
    assert "1 free addresses" in world.finished(second).lifecycle_details
    seen = network.evidence(second)
    assert (seen["enforced"], seen["nodes"], "no node" in seen["reason"]) == (False, [], True)


def test_nodes_of_two_runs_share_one_network(world: World) -> None:
    network = Network(world, "10.1.0.0/16")
    subnet = network.subnet("10.1.1.0/24", [ingress("tcp", "10.1.1.0/24", 6000)], [egress("all", "10.1.1.0/24")])
    server = network.run(_SERVER, subnet)
    world.printed(server, "listening")
    client = network.run(_CLIENT, subnet, SERVER=network.address(server), SECONDS="20")
    assert world.finished(client).lifecycle_state == "SUCCEEDED", world.lines(client)
    assert world.lines(client) == ["reached from 10.1.1.3"]
    world.printed(server, "from 10.1.1.3")
    live = network.evidence(server)
    assert _connections(live, "ingress") == {6000: 1}
    world.clients.data_science.cancel_job_run(server.id)
    world.finished(server)
    assert network.evidence(server)["flows"] == live["flows"], "what was seen is kept after the end"


def test_a_changed_rule_takes_effect_on_live_nodes_and_keeps_counts(world: World) -> None:
    network = Network(world, "10.2.0.0/16")
    block = "10.2.1.0/24"
    subnet = network.subnet(block, [ingress("tcp", block, 6000)], [egress("tcp", block)])
    server = network.run(_SERVER, subnet)
    world.printed(server, "listening")
    address = network.address(server)
    first = network.run(_CLIENT, subnet, SERVER=address, SECONDS="20")
    assert world.finished(first).lifecycle_state == "SUCCEEDED", world.lines(first)

    network.change(subnet, [ingress("tcp", block, 7000)], [egress("tcp", block)])
    eventually(lambda: _connections(network.evidence(server), "ingress"), lambda found: found == {7000: 0})
    refused = network.run(_CLIENT, subnet, SERVER=address, SECONDS="1")
    assert world.finished(refused).lifecycle_state == "FAILED"

    network.change(subnet, [ingress("tcp", block, 6000), ingress("tcp", block, 7000)], [egress("tcp", block)])
    eventually(lambda: _connections(network.evidence(server), "ingress"), lambda found: set(found) == {6000, 7000})
    again = network.run(_CLIENT, subnet, SERVER=address, SECONDS="20")
    assert world.finished(again).lifecycle_state == "SUCCEEDED", world.lines(again)
    assert _connections(network.evidence(server), "ingress")[6000] >= 2, "the first connection is still counted"

    other = network.subnet("10.2.2.0/24", [ingress("tcp", block, 8000)], [])
    network.use(subnet, network.lists[other])
    eventually(lambda: _connections(network.evidence(server), "ingress"), lambda found: found == {8000: 0})
    world.clients.data_science.cancel_job_run(server.id)
    world.finished(server)
