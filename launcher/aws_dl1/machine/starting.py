# SPDX-License-Identifier: Apache-2.0
"""Prepares and starts a container: code, launcher, image, secrets, SSH. All nodes start theirs together.

If a ticket names a newer release of this program, the machine switches to that first. So it need not be replaced.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher import network
from launcher.aws_dl1 import container as inside
from launcher.aws_dl1 import host_nic
from launcher.aws_dl1.fetch import AwsError, Identity, flaw, program_words, unpacked
from launcher.aws_dl1.machine import commands, options, record, ssh
from launcher.aws_dl1.machine.cluster import Cluster, format_rfc3339
from launcher.aws_dl1.machine.facts import Instance, MachinePaths, Settings, remove_folder, write_atomically, write_json
from launcher.aws_dl1.machine.record import Record
from launcher.aws_dl1.machine.tickets import ENDS, IN_PROGRESS, Ticket, require_variable_name
from launcher.aws_dl1.services import read_aws_secret
from launcher.compatibility import unlink_if_there
from launcher.errors import LaunchError, MissingError
from launcher.expects import VARIABLE as EXPECTS_VARIABLE
from launcher.network import ADDRESS_VARIABLE
from launcher.platforms import START_VARIABLE
from launcher.printing import LinePrinter
from launcher.readiness import Wait, peers_timeout
from launcher.retries import MAXIMUM_VARIABLE

_LOOK_SECONDS = 1.0
_REMEDY = "look at the reports of these nodes (`trainyard runs`), and start the run again"
_SHOWN, _VARIABLES = "shown", "variables"
# AWS's own variables for other endpoints.
_PLACES = ("AWS_ENDPOINT_URL", "AWS_EC2_METADATA_SERVICE_ENDPOINT")


@dataclass
class Machine:
    """The parts of this machine that all its starts share."""

    paths: MachinePaths
    settings: Settings
    me: Instance
    boot: str
    identity: Identity
    cluster: Cluster
    say: LinePrinter
    ssh_key: ssh.KeyPair = field(default_factory=ssh.KeyPair)


@dataclass
class Starting:
    """Prepares one start up to its container. `stopped` returns whether its waits should end."""

    machine: Machine
    ticket: Ticket
    record: Record
    say: LinePrinter
    stopped: Any

    @property
    def container(self) -> str:
        return container_name(self.machine.settings.job, self.ticket.number)

    def begin(self) -> None:
        """Starts the container. LaunchError or MissingError: it cannot start. StoppedError: it should not any more."""
        machine, ticket = self.machine, self.ticket
        code, launcher = self._fetched("code"), self._fetched("launcher")
        if launcher is None:
            raise LaunchError("neither the ticket nor the machine names a launcher: start the run again by its stack")
        commands.pull_image(machine.identity, ticket.image, self.say, lambda: bool(self.stopped()))
        port = ssh.free_port(machine.settings.ssh_port)
        self.record.state.update(address=machine.me.address, sshPort=port)
        self._put()
        peers = self._meet()
        # A ticket's nodes are in the order of their ranks.
        self._show(peers, port, peers[next(iter(ticket.environments))].address)
        volumes = {options.LAUNCHER: launcher, options.START: self.record.folder / _SHOWN}
        if code is not None:
            volumes[options.CODE] = code
        self.record.phase = record.STARTING
        self.record.save()
        own = ticket.environments[machine.me.node]
        words = options.run_words(
            self.container,
            ticket.image,
            options.isolated_program(inside.__name__),
            machine.settings.accelerator,
            machine.settings.efa_interfaces,
            {name: own.get(name, value) for name, value in machine.settings.accelerator.environment.items()},
            self.record.folder / _VARIABLES,
            volumes,
            self._made_scratch(),
        )
        try:
            commands.run_program(words, 600)
        except commands.CommandError as error:
            if commands.inspect_container(self.container) is None:
                raise LaunchError(f"docker does not start the container: {error}") from None
            self.say(f"the container exists already ({error}): this program started it before it was restarted")
        self.record.phase = record.RUNNING
        self.record.save()

    def _made_scratch(self) -> Path:
        folder = _scratch_folder(self.machine.paths, self.ticket.number)
        folder.mkdir(parents=True, exist_ok=True)
        # The image may run as any user.
        folder.chmod(0o1777)
        return folder

    def _fetched(self, what: str) -> Path | None:
        """Fetches the archive that the ticket names, otherwise the machine's, and returns its folder."""
        machine = self.machine
        name = self.ticket.own.get(what, getattr(machine.settings, what))
        if name is None:
            return None
        place = machine.paths.launchers if what == "launcher" else machine.paths.codes
        try:
            return unpacked(machine.identity, machine.settings.bucket, name, place)
        except (AwsError, OSError, http.client.HTTPException) as error:
            raise MissingError(f"the {what} {name} cannot be fetched: {error}") from None

    def _put(self) -> None:
        self.record.save()
        self.machine.cluster.put_state(self.ticket.number, self.record.state)

    def _meet(self) -> Mapping[str, ssh.Peer]:
        """Waits until all nodes of the start have their image, so that no container idles while another node pulls."""
        own = self.ticket.environments[self.machine.me.node]
        missing: set[str] = set()
        wait = Wait(
            self.say, lambda: f"the nodes {', '.join(sorted(missing))} to be ready for it", peers_timeout(own), _REMEDY,
            lambda: bool(self.stopped()),
        )  # fmt: skip
        while True:
            rows = self.machine.cluster.peers(self.ticket)
            for node, row in sorted(rows.items()):
                if row.get("state") in ENDS and "sshPort" not in row:
                    raise MissingError(f"the node {node} ended before the start: {row.get('details') or row['state']}")
            there = {node: row for node, row in rows.items() if row.get("sshPort")}
            missing = set(self.ticket.names) - set(there)
            if not missing:
                return {node: _parse_peer(node, row) for node, row in there.items()}
            if not wait.turn(_LOOK_SECONDS):
                raise MissingError(wait.timeout_message())

    def _show(self, peers: Mapping[str, ssh.Peer], port: int, first: str) -> None:
        """Writes the files for the container, and the file with its variables. Only root may read them."""
        shown = self.record.folder / _SHOWN
        ssh.write_files(shown / inside.SSH, self.machine.ssh_key, ssh.ssh_config(peers, inside=True))
        plain, hidden = self._variables(port, first)
        write_json(shown / inside.VARIABLES, hidden)
        lines = "".join(f"{name}={value}\n" for name, value in plain.items())
        write_atomically(self.record.folder / _VARIABLES, lines.encode())

    def _variables(self, port: int, first: str) -> tuple[dict[str, str], dict[str, str]]:
        """The variables for docker's file, and those that docker must not know or cannot take (line breaks). `first`:
        the first node's address."""
        machine, ticket = self.machine, self.ticket
        mine = machine.me
        given = {
            "AWS_REGION": machine.settings.region,
            **self._transport(ticket.environments[mine.node]),
            **machine.settings.accelerator.meeting_variables(first),
            options.KERNEL_VARIABLE: options.kernel_release(),
            options.SCRATCH_VARIABLE: options.SCRATCH,
            inside.PORT_VARIABLE: str(port),
            ADDRESS_VARIABLE: mine.address,
            **{name: value for name, value in machine.identity.environment.items() if name.startswith(_PLACES)},
            **({MAXIMUM_VARIABLE: f"{ticket.maximum_minutes:g}"} if ticket.maximum_minutes else {}),
            **({EXPECTS_VARIABLE: ticket.expects} if ticket.expects else {}),
            **ticket.environments[mine.node],
            START_VARIABLE: ticket.start,
        }  # fmt: skip
        hidden = self._secrets(mine.node)
        for name, value in given.items():
            if "\n" in value or "\r" in value:
                hidden.setdefault(name, value)
        return {name: value for name, value in given.items() if name not in hidden}, hidden

    def _transport(self, environment: Mapping[str, str]) -> dict[str, str]:
        """What the container has to know of the network between machines."""
        settings = self.machine.settings
        if not settings.accelerator.host_nic:
            return {options.EFA_VARIABLE: str(settings.efa_interfaces)}
        interface = network.interface_with_address(self.machine.me.address)
        variables = host_nic.transport_variables(
            settings.host_nic, settings.release, settings.efa_interfaces, interface
        )
        # Lists what the stack file set: the container could not tell that from what the machine set.
        names = [name for name in host_nic.CHOSEN if name in environment]
        return {**variables, **({host_nic.OWN_VARIABLE: ",".join(names)} if names else {})}

    def _secrets(self, node: str) -> dict[str, str]:
        """The secret variables that all nodes share, and those under the node's own name."""
        name = self.ticket.secret
        if name is None:
            return {}
        try:
            values = json.loads(read_aws_secret(self.machine.identity, name))
            keys = {key: key.rpartition("/") for key in values}
            return {
                require_variable_name(own): str(values[key]) for key, (of, _, own) in keys.items() if of in ("", node)
            }
        except (AwsError, OSError, http.client.HTTPException) as error:
            raise MissingError(f"the run's secret variables cannot be read from {name}: {error}") from None
        except (ValueError, AttributeError, RecursionError):
            raise LaunchError(
                f"the secret {name} is not a JSON object of variables: start the run by its stack"
            ) from None

    def clean(self) -> None:
        """Removes the container's files, so that no secret stays on the disk."""
        clean_start(self.machine.paths, self.record)


def clean_start(paths: MachinePaths, record: Record) -> None:
    """Removes the files that were made for a start's container, and its scratch folder."""
    remove_folder(record.folder / _SHOWN)
    unlink_if_there(record.folder / _VARIABLES)
    remove_folder(_scratch_folder(paths, record.number))


def _scratch_folder(paths: MachinePaths, number: int) -> Path:
    return paths.scratch / "starts" / f"{number:08}"


def has_container_files(folder: Path) -> bool:
    """Whether a start's container still has files here."""
    return (folder / _SHOWN).exists() or (folder / _VARIABLES).exists()


def container_name(job: str, number: int) -> str:
    """The container's name. It is the same in each attempt, so docker refuses a second container of a start."""
    return f"trainyard-{job}-{number:08}"


def in_progress(instance: str, began: float) -> dict[str, Any]:
    """The first state of a start."""
    return {"state": IN_PROGRESS, "startedAt": format_rfc3339(began), "instance": instance}


def _parse_peer(node: str, row: Mapping[str, Any]) -> ssh.Peer:
    """Reads another node's state. Another node wrote it, so it is validated before it goes into ssh's configuration."""
    address, port = str(row.get("address")), int(row["sshPort"])
    if not all(part.isdigit() for part in address.split(".")):
        raise MissingError(f"the node {node} has no address: {address!a}")
    return ssh.Peer(node, address, port)


def switch_program(machine: Machine, ticket: Ticket) -> None:
    """Becomes the program that the ticket names, unless that is this one or does not start here. The start has not
    begun yet, so the new program finds it in the queue."""
    running, name = Path(__file__).resolve().parents[3], ticket.own.get("launcher")
    if (
        name is None
        or running.parent != machine.paths.launchers.resolve()
        or record.read_record(machine.paths, ticket.number)
    ):
        return
    try:
        folder = unpacked(machine.identity, machine.settings.bucket, name, machine.paths.launchers)
    except (AwsError, OSError, http.client.HTTPException, tarfile.TarError):
        # The start fetches it again, and then reports the error.
        return
    if folder.name == running.name:
        return
    problem = flaw(str(folder))
    if problem:
        machine.say(f"the program of {ticket.start} is not used: {problem}")
        return
    machine.say(f"{ticket.start} names a newer program: continuing as {folder.name}")
    os.execv(sys.executable, program_words(str(folder), "serve"))
