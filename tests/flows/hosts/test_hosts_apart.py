# SPDX-License-Identifier: Apache-2.0
"""Separation of networks as on OCI: VCNs always, subnets by both sides' rules."""

from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, Network, egress, ingress

_SERVER = "server = socket.create_server(('', 6000)); tell('listening')\nwhile True: server.accept()[0].close()"
_CLIENT = """
try: tell('reached', reach(os.environ['SERVER'], 6000, seconds=3).getpeername()[0])
except OSError as error: tell(type(error).__name__)
"""


def _answer(world: World, network: Network, subnet: str, address: str) -> list[str]:
    run = network.run(_CLIENT, subnet, SERVER=address)
    assert world.finished(run).lifecycle_state == "SUCCEEDED", world.lines(run)
    return world.lines(run)


def test_vcns_with_the_same_addresses_are_separate(world: World) -> None:
    first, second = Network(world), Network(world)
    everything = ([ingress("all", ANYWHERE)], [egress("all", ANYWHERE)])
    server = first.run(_SERVER, first.subnet("10.0.1.0/24", *everything))
    world.printed(server, "listening")
    address = first.address(server)
    assert _answer(world, first, world.read(server).job_infrastructure_configuration_details.subnet_id, address) == [
        f"reached {address}"
    ]
    # The second VCN's first node has the server's address, so it connects to itself, where nothing listens.
    other = second.subnet("10.0.1.0/24", *everything)
    assert _answer(world, second, other, address) == ["ConnectionRefusedError"]
    world.clients.data_science.cancel_job_run(server.id)
    world.finished(server)


def test_rules_of_both_subnets_decide_about_traffic_between_them(world: World) -> None:
    network = Network(world, "10.20.0.0/16")
    here, there = "10.20.1.0/24", "10.20.2.0/24"
    serving = network.subnet(here, [ingress("tcp", there, 6000)], [egress("all", ANYWHERE)])
    allowed = network.subnet(there, [], [egress("tcp", here, 6000)])
    held_in = network.subnet("10.20.3.0/24", [], [])
    shut_out = network.subnet("10.20.4.0/24", [], [egress("all", ANYWHERE)])
    server = network.run(_SERVER, serving)
    world.printed(server, "listening")
    address = network.address(server)
    assert _answer(world, network, allowed, address) == [f"reached {address}"]
    assert _answer(world, network, held_in, address) == ["TimeoutError"]
    assert _answer(world, network, shut_out, address) == ["TimeoutError"]
    seen = network.evidence(server)
    assert {flow["from"] for flow in seen["flows"]} == {"10.20.2.2"}
    assert {drop["from"] for drop in seen["dropped"]} == {"10.20.4.2"}
    world.clients.data_science.cancel_job_run(server.id)
    world.finished(server)
