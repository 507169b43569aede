# SPDX-License-Identifier: Apache-2.0
"""`python3 -m launcher.aws_dl1.machine serve|wake|check`: the commands of the program on a machine."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Mapping

from launcher.aws_dl1.bucket import Store
from launcher.aws_dl1.fetch import Identity
from launcher.aws_dl1.machine import equipment
from launcher.aws_dl1.machine.cluster import Cluster
from launcher.aws_dl1.machine.facts import Instance, MachinePaths, machine_paths, read_instance, read_machine_settings
from launcher.aws_dl1.machine.serve import Server
from launcher.aws_dl1.machine.starting import Machine
from launcher.aws_dl1.machine.wake import WakePipe, wake_server
from launcher.errors import LaunchError, MissingError
from launcher.escaping import terminal_lines
from launcher.exits import CONFIGURATION, TEMPORARY
from launcher.printing import LinePrinter, secret_values
from launcher.supervise import Signals

_HELP = """\
trainyard-node serve    serve the runs of this machine's cluster, until the machine shuts down
trainyard-node wake     look into the queue now; AWS Systems Manager calls this
trainyard-node check    list what the machine needs, and whether it has it
"""
_TAGS_SECONDS = 120.0
_USAGE = 64


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    here, environment = machine_paths(os.environ), dict(os.environ)
    say = LinePrinter("machine", secret_values(environment, ()))
    try:
        if arguments == ["serve"]:
            return _serve_queue(here, environment, say)
        # Further arguments name a start. They are only for people who read the list of commands.
        if arguments[:1] == ["wake"]:
            woken = wake_server(here)
            print("woken" if woken else "the program is not up; it looks into the queue when it comes up")
            return 0
        if arguments == ["check"]:
            checked = equipment.check_equipment(read_machine_settings(here), here)
            for row in checked:
                found = f"{row.problem}\n  {row.remedy}" if row.problem else "there"
                print(terminal_lines(f"{row.what}: {found}"))
            return 1 if any(row.problem for row in checked) else 0
    except LaunchError as error:
        say(str(error))
        return CONFIGURATION
    except MissingError as error:
        say(str(error))
        return TEMPORARY
    print(_HELP, end="", file=sys.stderr)
    return _USAGE


def _serve_queue(here: MachinePaths, environment: Mapping[str, str], say: LinePrinter) -> int:
    signals = Signals()
    here.run.mkdir(parents=True, exist_ok=True)
    with (here.run / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MissingError("another program of this machine serves the queue: end that one first") from None
        settings = read_machine_settings(here)
        identity = Identity({**environment, "AWS_REGION": settings.region})
        me = _wait_for_instance(identity, signals, say)
        folder = Store(identity.environment, say).folder(f"s3://{settings.bucket}/.trainyard/clusters/{settings.job}")
        folder.give_up_when(signals.ended)
        say(f"{me.instance} is {me.node}, rank {me.rank} of the job {settings.job}")
        machine = Machine(here, settings, me, here.boot(), identity, Cluster(folder, me.node, say), say)
        return Server(machine, WakePipe(here), signals).run()


def _wait_for_instance(identity: Identity, signals: Signals, say: LinePrinter) -> Instance:
    """Retries, because the metadata service shows an instance's tags a moment after its start."""
    until = time.monotonic() + _TAGS_SECONDS
    while True:
        try:
            return read_instance(identity.metadata)
        except MissingError as error:
            if time.monotonic() > until or signals.ended():
                raise
            say(f"{error}; trying again")
        time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
