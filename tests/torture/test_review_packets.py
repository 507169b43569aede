# SPDX-License-Identifier: Apache-2.0
"""Random changes of rules, and two real hosts of a local cloud: a port that opens between them must open in the review.

TRAINYARD_TORTURE=<count> runs more of them. The reference is which ports one host reaches on the other. A marker, a
port that is open under only one set of rules, shows when that set has taken effect.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from catalog.platforms import require_capability
from components.platform.review import Passage, ReviewPlatform, Snapshot
from components.values.security_rules import DIRECTIONS, Direction, SecurityRule
from localcloud.aws.machines import Machine, SecurityGroupRules
from localcloud.control import Cloud
from tests.support.aws_instances import GROUP, Data, data_centre
from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World
from tests.support.counts import FIRST, wanted
from tests.support.network_world import Network, egress, ingress
from tests.support.reviews import id_of, resource
from tests.support.security_rules import group_rule
from tests.support.waiting import eventually
from trainyard.review.reach import compare_networks

pytestmark = pytest.mark.torture

COUNT = wanted(sample=3, full=300)
POOL = range(5000, 5012)
MARKERS = range(5100, 5100 + COUNT + 1)
LISTENS = f"""
import selectors, socket
waiting = selectors.DefaultSelector()
for port in [*range({POOL.start}, {POOL.stop}), *range({MARKERS.start}, {MARKERS.stop})]:
    waiting.register(socket.create_server(('', port), backlog=64), selectors.EVENT_READ)
print('listening', flush=True)
while True:
    for key, _ in waiting.select(): key.fileobj.accept()[0].close()
"""
# The ports that are open under the rules with this marker. If a scan misses a port on a busy machine, another one finds
# it.
SWEEP = f"""
import select, socket, time
def has_peer(one):
    try: return bool(one.getpeername())
    except OSError: return False
def sweep(address, ports, seconds=1.0):
    tried = {{}}
    for port in ports:
        one = socket.socket(); one.setblocking(False); one.connect_ex((address, port)); tried[one] = port
    ends, found = time.monotonic() + seconds, set()
    while tried and time.monotonic() < ends:
        _, ready, _ = select.select([], list(tried), [], max(0, ends - time.monotonic()))
        for one in ready:
            port = tried.pop(one)
            # A socket whose connect failed at once is ready too, and has no error left: it has no peer.
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0 and has_peer(one): found.add(port)
            one.close()
    for one in tried: one.close()
    return found
def settled(address, marker):
    while not sweep(address, [marker]): pass
    return sorted(set().union(*(sweep(address, range({POOL.start}, {POOL.stop})) for _ in range(3))))
"""


@dataclass(frozen=True)
class Rule:
    """`peer` empty: the nodes themselves, if the cloud has a name for them, otherwise their subnet."""

    protocol: str
    peer: str
    first: int
    last: int


Rules = Mapping[str, tuple[Rule, ...]]


def drawn(chance: random.Random, block: str, client: str, way: str) -> Rule:
    first = chance.choice(POOL)
    last = min(first + chance.choice((0, 0, 1, 3, 11)), POOL[-1])
    peer = chance.choice((block, block, "0.0.0.0/0", "192.0.2.0/24", f"{client}/32", ""))
    # Nothing lets all ports out: otherwise the next marker would be open before its rules are made.
    protocols = (*("tcp",) * 6, "udp", "all" if way == "ingress" else "udp")
    return Rule(chance.choice(protocols), peer, first, last)


def another(rules: Rules, chance: random.Random, block: str, client: str) -> Rules:
    """The rules with one added, widened, narrowed or removed."""
    way = chance.choice(("ingress", "ingress", "egress"))
    # A packet needs an egress and an ingress rule. The first egress rule stays, so that most changes of ingress rules
    # have an effect.
    kept = rules[way][: way == "egress"]
    mine = list(rules[way][len(kept) :])
    how = chance.randrange(4) if mine else 0
    at = chance.randrange(len(mine)) if mine else 0
    if how == 0:
        mine.append(drawn(chance, block, client, way))
    elif how == 1:
        mine[at] = replace(mine[at], last=min(mine[at].last + 2, POOL[-1]))
    elif how == 2:
        mine[at] = replace(mine[at], peer="0.0.0.0/0")
    else:
        del mine[at]
    return {**rules, way: (*kept, *mine[-3:])}


def held_to(open_before: set[int], open_now: set[int], sides: tuple[Snapshot, Snapshot], ends: tuple[str, str]) -> None:
    """Asserts that every port that opens or closes between the hosts is in the review, in at least one direction."""
    answers = require_capability(sides[0].platform, ReviewPlatform)
    found = compare_networks(*(answers.network(one) for one in sides))
    for port in open_now - open_before:
        assert _any(found.opened, port, ends), (port, found.opened, sides)
    for port in open_before - open_now:
        assert _any(found.closed, port, ends), (port, found.closed, sides)


def _any(passages: Iterable[Passage], port: int, ends: tuple[str, str]) -> bool:
    client, server = ends
    return any(
        one.protocol in ("tcp", "all") and one.ports[0] <= port <= one.ports[1]
        and _holds(one, client if one.direction == "ingress" else server)
        for one in passages
    )  # fmt: skip


def _holds(passage: Passage, address: str) -> bool:
    """Whether the peer includes the nodes. A name stands for the nodes here."""
    if "/" not in passage.peer:
        return True
    without = any(ip_address(address) in ip_network(one) for one in passage.but)
    return ip_address(address) in ip_network(passage.peer) and not without


@pytest.fixture
def world(cloud: Cloud) -> World:
    return World(Clients(cloud))


BLOCK, SERVER, CLIENT = "10.0.1.0/24", "10.0.1.2", "10.0.1.3"
LIST, SUBNET = "oci:Core/securityList:SecurityList", "oci:Core/subnet:Subnet"
PROBES = """
here = peers(2)
if os.environ['NODE_RANK'] == '0':
    exec(os.environ['LISTENS'])
exec(os.environ['SWEEP'])
for marker in range(int(os.environ['FIRST']), int(os.environ['END'])):
    tell('open', marker, *settled(here[0], marker))
"""


def _of_oci(rules: Rules) -> Snapshot:
    def rows(way: str, peer: str) -> list[dict[str, Any]]:
        return [
            {"protocol": {"tcp": "6", "udp": "17", "all": "all"}[one.protocol], peer: one.peer or BLOCK}
            | ({f"{one.protocol}Options": {"min": one.first, "max": one.last}} if one.protocol != "all" else {})
            for one in rules[way]
        ]

    return Snapshot("a", "oci", {}, (
        resource("oci:Core/vcn:Vcn", "vcn", cidrBlocks=["10.0.0.0/16"]),
        resource(SUBNET, "subnet", cidrBlock=BLOCK, securityListIds=[id_of(LIST, "rules")]),
        resource(LIST, "rules", ingressSecurityRules=rows("ingress", "source"),
                 egressSecurityRules=rows("egress", "destination")),
    ))  # fmt: skip


def test_ports_that_open_between_oci_nodes_are_in_the_review(world: World) -> None:
    chance, network = random.Random(FIRST), Network(world)
    subnet = network.subnet(BLOCK, [], [])
    run = network.cluster(
        PROBES, subnet, 2, LISTENS=LISTENS, SWEEP=SWEEP, FIRST=str(MARKERS.start), END=str(MARKERS.stop)
    )
    rules: Rules = {"ingress": (), "egress": (Rule("tcp", BLOCK, POOL[0], POOL[-5]),)}
    before, was, changes = _of_oci(rules), set[int](), 0
    try:
        for marker in MARKERS:
            mark = (Rule("tcp", BLOCK, marker, marker),)
            network.change(subnet, *(
                [make(one.protocol, one.peer or BLOCK, *(() if one.protocol == "all" else (one.first, one.last)))
                 for one in rules[way] + mark]
                for way, make in (("ingress", ingress), ("egress", egress))
            ))  # fmt: skip
            said = eventually(partial(_line, world, run, f"open {marker}"), bool)
            now = {*map(int, said.split()[2:])}
            after = _of_oci(rules)
            held_to(was, now, (before, after), (CLIENT, SERVER))
            changes += was != now
            before, was = after, now
            rules = another(rules, chance, BLOCK, CLIENT)
    finally:
        world.clients.data_science.cancel_job_run(run.id)
    assert changes * 10 >= COUNT, "changes mean something"


def _line(world: World, run: Any, begins: str) -> str:
    return next((one for one in world.lines(run) if one.startswith(f"{begins} ") or one == begins), "")


def _of_aws(rules: Rules) -> Snapshot:
    made = [
        resource("aws:ec2/subnet:Subnet", "subnet", cidrBlock=BLOCK),
        replace(resource("aws:ec2/securityGroup:SecurityGroup", "nodes", name="nodes"), id=GROUP),
        resource("aws:ec2/instance:Instance", "job/main-0", vpcSecurityGroupIds=[GROUP]),
    ]
    for way in ("ingress", "egress"):
        for number, one in enumerate(rules[way]):
            peer = {"cidrIpv4": one.peer} if one.peer else {"referencedSecurityGroupId": GROUP}
            ports = {} if one.protocol == "all" else {"fromPort": one.first, "toPort": one.last}
            protocol = "-1" if one.protocol == "all" else one.protocol
            token = f"aws:vpc/securityGroup{way.title()}Rule:SecurityGroup{way.title()}Rule"
            made.append(resource(token, f"{way}-{number}", securityGroupId=GROUP, ipProtocol=protocol, **peer, **ports))
    return Snapshot("a", "aws-dl1", {}, tuple(made))


def test_ports_that_open_between_aws_instances_are_in_the_review(tmp_path: Path) -> None:
    asyncio.run(_two_instances(tmp_path))


async def _two_instances(folder: Path) -> None:
    chance = random.Random(FIRST)
    async with data_centre(folder) as data:
        server, client = data.start(1), data.start(2)
        for one in (server, client):
            await data.heard("agent", one.id)
        unit = "[Service]\nExecStart=python3 -c \"exec(open('/root/listens').read())\"\n"
        await data.run(
            server, f'cat > /root/listens <<"END"\n{LISTENS}\nEND',
            f"cat > /etc/systemd/system/l.service <<'END'\n{unit}END", "systemctl start l",
        )  # fmt: skip
        await data.run(client, f'cat > /root/sweep.py <<"END"\n{SWEEP}\nEND')
        ends = tuple(machine.interfaces[0].address for machine in (client, server))
        await _compare(data, chance, (ends[0], ends[1]), client)


def _group_rule(rule: Rule, direction: Direction) -> SecurityRule:
    if rule.protocol == "all":
        return group_rule("-1", rule.peer or GROUP, direction=direction)
    return group_rule(rule.protocol, rule.peer or GROUP, rule.first, rule.last, direction)


async def _compare(data: Data, chance: random.Random, ends: tuple[str, str], client: Machine) -> None:
    rules: Rules = {"ingress": (), "egress": (Rule("tcp", BLOCK, POOL[0], POOL[-5]),)}
    before, was, changes = _of_aws(rules), set[int](), 0
    for marker in MARKERS:
        mark = (Rule("tcp", BLOCK, marker, marker),)
        data.reports.group = SecurityGroupRules(
            GROUP, "nodes", *(tuple(_group_rule(rule, way) for rule in rules[way] + mark) for way in DIRECTIONS)
        )
        data.instances.network_changed()
        probe = f"import sys; sys.path.insert(0, '/root'); import sweep; print(*sweep.settled('{ends[1]}', {marker}))"
        code, said, errors = await data.run(client, f'python3 -c "{probe}"')
        assert code == 0, errors
        now, after = {*map(int, said.split())}, _of_aws(rules)
        held_to(was, now, (before, after), ends)
        changes += was != now
        before, was = after, now
        rules = another(rules, chance, BLOCK, ends[0])
    assert changes * 10 >= COUNT, "changes mean something"
