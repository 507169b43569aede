# SPDX-License-Identifier: Apache-2.0
"""`--check`: what a node would start, said without starting or asking anything."""

from __future__ import annotations

from collections.abc import Mapping

from launcher import commands, pin
from launcher.compatibility import shell_words
from launcher.document import Launch
from launcher.placeholders import Place
from launcher.processes import Spec
from launcher.say import Voice, secret_values


def described(launch: Launch, environment: Mapping[str, str]) -> str:
    """For people. Addresses that are not known yet stand as `<address of worker-0>`."""
    addresses = tuple(f"<address of {launch.label(rank).split('(')[1].rstrip(')')}>" for rank in range(launch.nodes))
    place = Place(addresses, addresses[launch.rank], "<interface>")
    work = commands.work(launch, place, environment)
    lines = [
        f"{launch.run} attempt {launch.attempt}: rank {launch.label(launch.rank)} of {launch.nodes} nodes",
        f"framework: {launch.framework}" + (f" ({launch.strategy})" if launch.strategy else ""),
        f"peers come from: {launch.peers['from']}",
        *(f"listens on {label}: {_numbers(launch, label)}" for label, port in launch.ports.items() if port.listens),
        *filter(None, [pin.described(launch, environment)]),
        *(f"starts beside the command: {_words(spec)}" for spec in work.services),
        *(f"waits for port {one.label or one.port} of {'every ' * one.every}{one.role}" for one in launch.awaits),
        *(f"waits until this succeeds: {_words(spec)}" for spec in filter(None, [work.awaited])),
        *(f"starts: {_words(spec)}" for spec in work.commands),
        *(f"keeps of the working directory, of any size: {pattern}" for pattern in launch.keep),
        *(f"sets {name}={value}" for name, value in sorted(_told(launch, work).items())),
    ]
    return Voice(secrets=secret_values(environment, launch.secrets)).masked("\n".join(lines))


def _numbers(launch: Launch, label: str) -> str:
    if launch.ports[label].reserved:
        return ", ".join(map(str, launch.port_numbers(label, launch.rank)))
    ports = launch.ports[label].range
    if ports is None:
        return "any port"
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"


def _words(spec: Spec) -> str:
    return f"{spec.prefix}{shell_words(spec.words)}"


def _told(launch: Launch, work: commands.Work) -> dict[str, str]:
    environment = (*work.commands, *work.services)[0].environment
    return {name: environment[name] for name in launch.environment}
