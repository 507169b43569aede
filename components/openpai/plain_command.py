# SPDX-License-Identifier: Apache-2.0
"""The shell command of a task without the launcher: it sets rank, addresses and ports from OpenPAI's variables, and
starts the program.

It is only for frameworks that need variables and no further process (`plain` in catalog/openpai.toml), and for scripts
that were written for OpenPAI: for those, `as_is_commands` runs the team's command unchanged. There, roles and port
labels have the team's names, so programs find each other by OpenPAI's variables. bash runs the command, and OpenPAI
fills in references such as `<% $parameters.name %>`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from catalog.frameworks.validation import FORMS_OF_A_PORT
from components.openpai.protocol import controller_name
from components.openpai.stack import END_OF_PARAMETER

_SPECIAL = re.compile(r"[\\\"$`]")
INDEX = "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
# Prints the interface with this address. There is no tool for this that all images have.
_INTERFACE = (
    "import fcntl, socket, struct, sys\n"
    "any_socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "for _, name in socket.if_nameindex():\n"
    "    try:\n"
    '        answer = fcntl.ioctl(any_socket.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))\n'
    "    except OSError:\n"
    "        continue\n"
    "    if socket.inet_ntoa(answer[20:24]) == sys.argv[1]:\n"
    "        print(name)"
)
# TensorFlow's name of the main role: a chief if there are servers, otherwise a worker.
_MAIN = {True: "chief", False: "worker"}
# How many characters of a job's name are in the name of a start. The launcher has the same number.
_LETTERS = 60
_END = "TRAINYARD_COMMAND"
# The options with which the runtime starts a command.
_STRICT = "-o errexit -o nounset -o pipefail"


def quote_word(text: str) -> str:
    """The text as one quoted word of bash."""
    return shlex.quote(text).replace("<%", "<''%")


def interpolated_word(text: str, values: Mapping[str, str]) -> str:
    """One word of bash, in which `{name}` is replaced by a value that bash expands. Everything else is quoted."""
    names = "|".join(re.escape(name) for name in values)
    parts = re.split(r"\{(" + names + r")\}", text) if values else [text]
    shown = (values[part] if number % 2 else _SPECIAL.sub(r"\\\g<0>", part) for number, part in enumerate(parts))
    return '"' + "".join(shown).replace("<%", '<""%') + '"'


def json_word(value: Mapping[str, Any]) -> str:
    """JSON as one word, without characters that bash or a cluster would interpret."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "'" + text.replace("<", "\\u003c").replace("'", "\\u0027") + "'"


def export_line(name: str, word: str) -> str:
    return f"export {name}={word}"


def secret_line(name: str, key: str) -> str:
    """Sets a variable from a secret in Base64, so that no character of it can end the quotes, and line breaks stay."""
    return (
        f'{name}="$(printf %s \'<% $secrets.{key} %>\' | base64 -d; printf x)"; {name}="${{{name}%x}}"; export {name}'
    )


def parameter_line(name: str) -> str:
    """Sets a variable from a parameter, which users may have changed in the portal. Line breaks at its end stay."""
    end = END_OF_PARAMETER
    text = f"$(cat <<'{end}'\n<% $parameters.{name} %>\n{end}\nprintf x)"
    return f'{name}="{text}"; {name}="${{{name}%?x}}"; export {name}'


def run_within_limit(seconds: int, runs: str) -> tuple[str, ...]:
    """Exits with the code that `runs` puts into `trainyard_code`. If the time limit had to kill the program, the code
    is 124, because OpenPAI would retry 137 and not count it."""
    return (
        f"trainyard_until=$((SECONDS + {seconds})); trainyard_code=0",
        runs,
        'if [ "$trainyard_code" = 137 ] && [ "$SECONDS" -ge "$trainyard_until" ]; then trainyard_code=124; fi',
        'exit "$trainyard_code"',
    )


@dataclass(frozen=True)
class PlainCommand:
    """`launch`: the launch document of the role. `listeners`: the roles with a port of each label. `store`: the folder
    of the storage in tasks."""

    launch: Mapping[str, Any]
    listeners: Mapping[str, Sequence[str]]
    store: str
    # Words to put before the program, such as `timeout 60m`, and the seconds after which they end it.
    before: str
    limit: int

    def commands(self) -> Iterator[str]:
        launch, role = self.launch, controller_name(self.launch["role"])
        yield own_rank_line(launch)
        yield f'trainyard_variable="PAI_HOST_IP_{role}_${INDEX}"; trainyard_address="${{!trainyard_variable}}"'
        for label, listeners in self.listeners.items():
            if launch["role"] in listeners:
                name = _port_name(label)
                yield f'trainyard_variable="PAI_PORT_LIST_{role}_${{{INDEX}}}_{name}"'
                yield f'trainyard_port_{name}="${{!trainyard_variable}}"'
        yield f'trainyard_interface="$("$trainyard_python" -I -c \'{_INTERFACE}\' "$trainyard_address")"'
        yield from make_folder_lines(launch, self.store)
        yield self._process()
        processes = 1 if launch["wrap"] else launch["processes"]
        runs = "( trainyard_process 0 ) || trainyard_code=$?" if processes == 1 else _run_together(processes)
        yield "\n".join(run_within_limit(self.limit, runs))

    def _process(self) -> str:
        """A shell function that runs one process. Its argument is the number of the process on the node."""
        values = self._values()
        environment = sorted(self.launch["environment"].items())
        lines = [
            "trainyard_process() {",
            "trainyard_local=$1",
            *(export_line(name, interpolated_word(text, values)) for name, text in environment),
            f"exec {self.before} {' '.join(self._words(values))}",
            "}",
        ]
        return "\n".join(lines)

    def _words(self, values: Mapping[str, str]) -> Iterator[str]:
        command = list(self.launch["command"])
        if self.launch["wrap"]:
            yield from (interpolated_word(word, values) for word in self.launch["wrap"])
            # Wrappers get the script without the interpreter.
            command = command[1:] if command[0] in ("python", "python3") else command
        elif command[0].endswith(".py"):
            yield '"$trainyard_python" -u'
        yield from (interpolated_word(word, values) for word in command)

    def _values(self) -> dict[str, str]:
        """The shell expression for each placeholder of the launcher."""
        launch = self.launch
        nodes, processes = sum(row["replicas"] for row in launch["roles"]), launch["processes"]
        values = {
            "rank": "$trainyard_rank",
            "nodes": str(nodes),
            "process": f"$((trainyard_rank * {processes} + trainyard_local))",
            "local": "$trainyard_local",
            "processes": str(processes),
            "world": str(nodes * processes),
            "address": "$trainyard_address",
            "interface": "$trainyard_interface",
            "python": "$trainyard_python",
            "run": f"{launch['job']}-{launch['run']}-{launch['attempt']}",
        }
        if any("{tf_config}" in text for text in launch["environment"].values()):
            values["tf_config"] = self._tf_config()
        for row in launch["roles"]:
            addresses = [_host_variable(row["name"], index) for index in range(row["replicas"])]
            values |= {f"address.{row['name']}": addresses[0]} if addresses else {}
            values[f"addresses.{row['name']}"] = ",".join(addresses)
        for label, listeners in self.listeners.items():
            own = launch["role"] in listeners
            number = f"$trainyard_port_{_port_name(label)}" if own else self._first_port(label)
            values |= dict.fromkeys((f"port.{label}{form}" for form in FORMS_OF_A_PORT), number)
        return values

    def _tf_config(self) -> str:
        """TensorFlow's description of the cluster. Only a cluster with servers has a chief."""
        served = any(row["name"] == "ps" for row in self.launch["roles"])
        cluster: dict[str, list[str]] = {}
        own, before = "", 0
        for row in self.launch["roles"]:
            task = _MAIN[served] if row["name"] == "main" else row["name"]
            members = cluster.setdefault(task, [])
            if row["name"] == self.launch["role"]:
                own, before = task, len(members)
            members += [
                f"{_host_variable(row['name'], one)}:{self._task_port(row['name'], one)}"
                for one in range(row["replicas"])
            ]
        text = json.dumps({"cluster": cluster, "task": {"type": own, "index": 0}})
        return text.replace('"index": 0', f'"index": $(({before} + {INDEX}))').replace('"', '\\"')

    def _task_port(self, role: str, index: int) -> str:
        """The port that is named after the role. A role without one, such as the chief, uses the first port."""
        label = role if role in self.listeners else next(iter(self.listeners), "")
        if not label:
            return "0"
        return _port_variable(role, index, label) if role in self.listeners[label] else self._first_port(label)

    def _first_port(self, label: str) -> str:
        return _port_variable(self.listeners[label][0], 0, label)


def _run_together(processes: int) -> str:
    """Runs several processes. When one fails, the others are ended: they would wait for it forever."""
    # `wait -n` is not used: bash forgets a child that ends together with another.
    return f"""\
trainyard_children=()
for trainyard_number in $(seq 0 {processes - 1}); do
    ( trainyard_process $trainyard_number ) & trainyard_children+=($!)
done
while [ ${{#trainyard_children[@]}} -gt 0 ] && [ "$trainyard_code" = 0 ]; do
    sleep 1
    for trainyard_number in "${{!trainyard_children[@]}}"; do
        trainyard_child=${{trainyard_children[$trainyard_number]}}
        kill -0 "$trainyard_child" 2>/dev/null && continue
        unset "trainyard_children[$trainyard_number]"
        wait "$trainyard_child" || {{ trainyard_code=$?; break; }}
    done
done
[ "$trainyard_code" = 0 ] || kill ${{trainyard_children[@]+"${{trainyard_children[@]}}"}} 2>/dev/null || true
wait || true"""


def own_rank_line(launch: Mapping[str, Any]) -> str:
    """Sets the rank: roles in the file's order, and the tasks of each by index."""
    ranks, first = {}, 0
    for row in launch["roles"]:
        ranks[row["name"]] = first
        first += row["replicas"]
    return f"trainyard_rank=$(({ranks[launch['role']]} + {INDEX}))"


def make_folder_lines(launch: Mapping[str, Any], store: str) -> Iterator[str]:
    """Makes the folders for checkpoints and results, as the launcher does. Each attempt has its own results."""
    run = f"{store}/{launch['job']}/{launch['run']}"
    yield 'trainyard_start="${PAI_JOB_NAME##*~}"'
    yield f'[ ${{#trainyard_start}} -le {_LETTERS} ] || trainyard_start="${{trainyard_start: -{_LETTERS}}}"'
    yield "while [[ $trainyard_start == [-_]* ]]; do trainyard_start=${trainyard_start:1}; done"
    yield "trainyard_output=output"
    yield '[ "$trainyard_rank" = 0 ] || trainyard_output="output/rank-$trainyard_rank"'
    start = '"$trainyard_start-${FC_FRAMEWORK_ATTEMPT_ID:-0}/$trainyard_output"'
    yield export_line("TRAINYARD_CHECKPOINTS", quote_word(f"{run}/checkpoints"))
    yield export_line("TRAINYARD_OUTPUT", f"{quote_word(run)}/{launch['attempt']}/{start}")
    yield 'mkdir -p "$TRAINYARD_CHECKPOINTS" "$TRAINYARD_OUTPUT"'


def _host_variable(role: str, index: int) -> str:
    return f"${{PAI_HOST_IP_{controller_name(role)}_{index}}}"


def _port_variable(role: str, index: int, label: str) -> str:
    return f"${{PAI_PORT_LIST_{controller_name(role)}_{index}_{_port_name(label)}}}"


def _port_name(label: str) -> str:
    return label.replace("-", "_")


def as_is_commands(launch: Mapping[str, Any], store: str, before: str, limit: int) -> Iterator[str]:
    """`store`: the folder of the storage in tasks, or "". `before`: words to put before the program, such as `timeout
    60m`, which end it after `limit` seconds."""
    if store:
        yield own_rank_line(launch)
        yield from make_folder_lines(launch, store)
    text, *args = launch["command"]
    words = " ".join([text.rstrip(), *map(quote_word, args)])
    end = _END
    while end in words.splitlines():
        end += "_"
    yield f"trainyard_command=; IFS= read -r -d '' trainyard_command <<'{end}' || true\n{words}\n{end}"
    yield from run_within_limit(limit, f'{before} bash {_STRICT} -c "$trainyard_command" || trainyard_code=$?')
