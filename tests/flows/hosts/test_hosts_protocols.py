# SPDX-License-Identifier: Apache-2.0
"""Security rules with more than a port: protocols, source ports, and stateless rules."""

from tests.support.cloud_world import World
from tests.support.network_world import ANYWHERE, Network, egress, ingress, ports

SERVER, CLIENT = "10.0.1.0/24", "10.0.2.0/24"


_SERVER = """
import threading
def serve(port):
    server = socket.create_server(('', port))
    while True: server.accept()[0].close()
for port in (5001, 5002, 5003, 5005): threading.Thread(target=serve, args=(port,), daemon=True).start()
echo = socket.socket(type=socket.SOCK_DGRAM)
echo.bind(('', 5004))
tell('listening')
while True:
    said, peer = echo.recvfrom(64)
    echo.sendto(said, peer)
"""
_CLIENT = """
address = os.environ['SERVER']
def attempt(name, port, source=0):
    connection = socket.socket()
    connection.settimeout(3)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if source: connection.bind(('', source))
    try:
        connection.connect((address, port))
        tell(name, 'reached')
    except OSError as error:
        tell(name, type(error).__name__)
    connection.close()
attempt('stateful', 5001)
attempt('stateless one way', 5002)
attempt('stateless both ways', 5003)
attempt('from another port', 5005)
attempt('from the right port', 5005, 40001)
for port, seconds in ((5004, 30), (5005, 1.5)):
    datagrams = socket.socket(type=socket.SOCK_DGRAM)
    datagrams.settimeout(seconds)
    datagrams.sendto(b'hello', (address, port))
    try: tell('udp', port, datagrams.recv(64).decode())
    except OSError as error: tell('udp', port, type(error).__name__)
"""


def test_rules_with_protocols_source_ports_and_stateless_rules_are_enforced(world: World) -> None:
    network = Network(world)
    serving = network.subnet(
        SERVER,
        [
            ingress("tcp", CLIENT, 5001, description="stateful"),
            ingress("tcp", CLIENT, 5002, is_stateless=True),
            ingress("tcp", CLIENT, 5003, is_stateless=True, description="stateless"),
            ingress("udp", CLIENT, 5004, description="udp"),
            ingress("tcp", CLIENT, tcp_options=ports("tcp", 5005, 5005, source=(40000, 40010))),
        ],
        [egress("tcp", CLIENT, tcp_options=ports("tcp", 0, 0, source=(5003, 5003)), is_stateless=True)],
    )
    # No ingress rule: replies belong to an existing connection.
    calling = network.subnet(CLIENT, [], [egress("all", ANYWHERE)])
    server = network.run(_SERVER, serving)
    world.printed(server, "listening")
    client = network.run(_CLIENT, calling, SERVER=network.address(server))
    assert world.finished(client).lifecycle_state == "SUCCEEDED", world.lines(client)
    assert world.lines(client) == [
        "stateful reached",
        "stateless one way TimeoutError",
        "stateless both ways reached",
        "from another port TimeoutError",
        "from the right port reached",
        "udp 5004 hello",
        "udp 5005 TimeoutError",
    ]
    seen = network.evidence(server)
    counted = {rule["description"]: rule["connections"] for rule in seen["rules"] if rule["description"]}
    assert counted.pop("stateless") >= 1, "what nobody tracks is counted each time it is sent"
    assert counted == {"stateful": 1, "udp": 1}
    assert {(drop["protocol"], drop["port"]) for drop in seen["dropped"] if drop["direction"] == "ingress"} == {
        ("tcp", 5005), ("udp", 5005),
    }  # fmt: skip
    assert {(flow["protocol"], flow["port"]) for flow in seen["flows"]} >= {
        ("tcp", 5001), ("tcp", 5002), ("tcp", 5003), ("tcp", 5005), ("udp", 5004),
    }  # fmt: skip
    world.clients.data_science.cancel_job_run(server.id)
    world.finished(server)
