# SPDX-License-Identifier: Apache-2.0
"""`python -I -m launcher`: reads the arguments and the environment, and makes a node from them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from launcher import commands, exits, pin, platforms, settings
from launcher.compatibility import shell_words
from launcher.document import Launch, read_launch
from launcher.errors import LaunchError
from launcher.escaping import terminal_line, terminal_lines
from launcher.expects import read_expects
from launcher.network import require_packages
from launcher.placeholders import Place
from launcher.printing import LinePrinter, secret_values
from launcher.processes import Spec

_HELP = """\
python -I -m launcher            start this node's part of a run
python -I -m launcher --check    say what it would start, and start nothing
python -I -m launcher --help     this page

-I: modules in the current folder or in PYTHONPATH, which belong to the team, cannot replace the launcher's own.

What to start is read from TRAINYARD_LAUNCH, which the platform sets (schemas/launch.schema.json describes it).
These variables change how (docs/launcher.md explains them):
"""
VARIABLES = {
    "TRAINYARD_NODE_ADDRESS": "this node's address, if it is not the one that this machine uses towards the bucket",
    "TRAINYARD_WAIT_SECONDS": "how long to wait for the other nodes (1800)",
    "TRAINYARD_READY_SECONDS": "how long to wait for the framework's own services (300)",
    "TRAINYARD_SLOW_SECONDS": "after how long a service that ends before it was ready starts again, twice at most (20)",
    "TRAINYARD_GRACE_SECONDS": "how long processes may take to end before they are killed (6)",
    "TRAINYARD_LINGER_SECONDS": "how long nodes may go on once the run has succeeded without them (30)",
    "TRAINYARD_LOST_SECONDS": "after how long without a heartbeat a node counts as lost (60)",
    "TRAINYARD_STALL_SECONDS": "after how long without any activity a gang counts as stalled; 0: never (1800)",
    "TRAINYARD_TAKE_STACKS": "whether to look where processes are when a run fails or hangs; 0: never (1)",
    "TRAINYARD_MAXIMUM_MINUTES": "the run's maximum runtime, until which transient failures are retried (43200)",
    "TRAINYARD_EXPECTS": "what the run expects of its nodes and their network, which they test before training",
    "TRAINYARD_ACCESS_SECONDS": "how long access to the bucket may take to come into force (300)",
    "TRAINYARD_START": "the name of this start of the run, the same on all nodes; for platforms that set none",
    "TRAINYARD_PLACE": "the folder in which the node's own folders are made (HOME)",
    "TRAINYARD_ENVIRONMENT": "the local environment that stands in for an image",
    "TRAINYARD_KEEP_MEGABYTES": "how much of the working directory is always kept (50 in one file, 500 in all)",
    "TRAINYARD_PIN_LIBRARY": "the library that keeps data ports to their range",
}
EXIT_CODES = (
    "ends with the exit code of the command; 75 when other nodes or the bucket could not be reached, 78 when its\n"
    "configuration is wrong, 124 when all ranks stalled"
)


def main(arguments: list[str]) -> int:
    """Returns the exit code."""
    if arguments in (["--help"], ["-h"]):
        named = {**VARIABLES, **platforms.platform_variables()}
        width = max(map(len, named))
        print(_HELP + "\n".join(f"  {name:{width}}  {what}" for name, what in named.items()) + f"\n\nIt {EXIT_CODES}.")
        return 0
    if arguments not in ([], ["--check"]):
        shown = terminal_line(" ".join(arguments))
        print(f"launcher: unknown arguments `{shown}`: see python -I -m launcher --help", file=sys.stderr)
        return 64
    environment = dict(os.environ)
    try:
        settings.check_numbers(environment, VARIABLES)
        launch = read_launch(environment)
        if arguments:
            print(terminal_lines(describe_node(launch, environment)))
            return 0
        require_packages(launch, environment)
        return _run_node(launch, environment)
    except LaunchError as error:
        LinePrinter()(f"{error}")
        return exits.CONFIGURATION


def _run_node(launch: Launch, environment: Mapping[str, str]) -> int:
    from launcher import stalls
    from launcher.activity import Meter, noise_of
    from launcher.node import Node
    from launcher.pin import Pin
    from launcher.preflight import Preflight
    from launcher.processes import ChildProcesses
    from launcher.retries import Retries, in_start_folder
    from launcher.stacks.report import STALL, Stacks
    from launcher.status import TRANSPORT_VARIABLE, StatusReporter
    from launcher.stores import folder_opener
    from launcher.supervise import Signals
    from launcher.workplace import Workplace

    say = LinePrinter(f"{launch.rank}.launcher", secret_values(environment, launch.secrets))
    launch, open_folder = in_start_folder(launch), folder_opener(environment, say)
    signals, children = Signals(), ChildProcesses(noise_of(launch.framework, launch.processes))
    workplace = Workplace(launch, environment, say, open_folder)
    board_client = None
    if launch.folder is not None:
        from launcher.board_client import BoardClient

        board_client = BoardClient(launch, launch.folder, open_folder, environment, say)
    transport = environment.get(TRANSPORT_VARIABLE, "")
    reporter = StatusReporter(
        launch, board_client, str(workplace.progress), lambda: say.masked(children.bar), transport
    )
    stacks = Stacks(launch, environment, say, board_client, reporter, children)

    def note_idle(why: str) -> None:
        reporter.idle(why)
        if why:
            stacks.take(STALL)

    limit = settings.number_setting(environment, stalls.VARIABLE, launch.stall_minutes * 60)
    meter = Meter(lambda: children.written, str(workplace.progress))
    watch = stalls.Stalls(launch, limit, board_client, meter, say, lambda: children.last_line, note_idle)
    preflight = Preflight(launch, read_expects(environment), say, board_client, workplace.root, signals.ended)
    pin, retries = Pin(launch, environment, say), Retries.of(launch.retries, environment)
    code = Node(
        launch, environment, say, signals, children, board_client, workplace, reporter, pin, watch, retries, preflight,
        stacks,
    ).run()  # fmt: skip
    # If the platform ended the node, the code has to say by which signal.
    own = code if signals.received else launch.identity.exit_code(code)
    if own != code:
        kind = exits.failure_kind(code)
        say(f"ends with code {own} in place of {code}: by that, the platform knows that it is {kind}")
    return own


def describe_node(launch: Launch, environment: Mapping[str, str]) -> str:
    """What the node would start, for people. Unknown addresses are shown as `<address of worker-0>`."""
    addresses = tuple(f"<address of {launch.label(rank).split('(')[1].rstrip(')')}>" for rank in range(launch.nodes))
    place = Place(addresses, addresses[launch.rank], "<interface>")
    work = commands.build_work(launch, place, environment)
    variables = (*work.commands, *work.services)[0].environment
    lines = [
        f"{launch.run} attempt {launch.attempt}: rank {launch.label(launch.rank)} of {launch.nodes} nodes",
        f"framework: {launch.framework}" + (f" ({launch.strategy})" if launch.strategy else ""),
        f"peers come from: {launch.peers['from']}",
        *(
            f"listens on {label}: {_port_numbers_text(launch, label)}"
            for label, port in launch.ports.items()
            if port.listens
        ),
        *filter(None, [pin.describe_pinning(launch, environment)]),
        *(f"starts beside the command: {_command_text(spec)}" for spec in work.services),
        *(f"waits for port {one.label or one.port} of {'every ' * one.every}{one.role}" for one in launch.awaits),
        *(f"waits until this succeeds: {_command_text(spec)}" for spec in filter(None, [work.awaited])),
        *(f"starts: {_command_text(spec)}" for spec in work.commands),
        *(f"keeps of the working directory, of any size: {pattern}" for pattern in launch.keep),
        *(f"sets {name}={variables[name]}" for name in sorted(launch.environment)),
    ]
    return LinePrinter(secrets=secret_values(environment, launch.secrets)).masked("\n".join(lines))


def _port_numbers_text(launch: Launch, label: str) -> str:
    if launch.ports[label].reserved:
        return ", ".join(map(str, launch.port_numbers(label, launch.rank)))
    ports = launch.ports[label].range
    if ports is None:
        return "any port"
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"


def _command_text(spec: Spec) -> str:
    return f"{spec.prefix}{shell_words(spec.words)}"
