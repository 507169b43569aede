# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for programs of a machine. Their output says that they are stand-ins."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from localcloud.aws.hosts.machine import channels
from localcloud.aws.hosts.machine.channels import BOOT

_SAYS = "a stand-in on trainyard's local cloud"
_LOOK_SECONDS = 0.05
_LIBFABRIC = "1.22.0"


def main(arguments: list[str]) -> int:
    name, *words = arguments
    return ROWS.get(name, _list_accelerators)(words)


def _run_shutdown(words: Sequence[str]) -> int:
    return _ask_and_print("machine", ["reboot" if "-r" in words else "halt"])


def _cloud_init(words: Sequence[str]) -> int:
    print("status: done")
    return 0


def _list_accelerators(words: Sequence[str]) -> int:
    """The program that lists the accelerators of the machine for which this one stands in. None exists here."""
    row = _boot_facts()["stands_for"]
    listed = [{"index": number, "model": row["model"], "note": _SAYS} for number in range(row["count"])]
    lines = [", ".join(map(str, item.values())) for item in listed]
    print(json.dumps(listed) if row["listed"] == "json" else "\n".join(lines))
    return 0


def _boot_facts() -> Any:
    return json.loads(BOOT.read_text())


def _run_fi_info(words: Sequence[str]) -> int:
    """`fi_info`: lists a provider for each EFA interface of the instance, and libfabric's version."""
    if "--version" in words:
        print(f"fi_info: {_LIBFABRIC}\nlibfabric: {_LIBFABRIC}\nlibfabric api: 1.22\n({_SAYS})")
        return 0
    interfaces = _boot_facts()["efa"]
    if not interfaces:
        print("fi_getinfo: -61 (No data available)", file=sys.stderr)
        return 61
    for number in range(interfaces):
        print(f"provider: efa\n    fabric: efa\n    domain: rdmap{number}-rdm\n    type: FI_EP_RDM ({_SAYS})")
    return 0


def _run_docker(words: Sequence[str]) -> int:
    if not words:
        print(f"docker: {_SAYS}")
        return 0
    verb, *rest = words
    if verb in _LOOKS:
        return _LOOKS[verb](rest)
    if verb in ("run", "stop", "kill", "rm"):
        return _ask_and_print("docker", words)
    if verb in ("pull", "login", "logout"):
        if verb == "login" and "--password-stdin" in rest:
            sys.stdin.read()
        print("Login Succeeded" if verb == "login" else f"docker {verb}: nothing to do for {_SAYS}")
        return 0
    print(f"docker: {_SAYS} has no `{verb}`", file=sys.stderr)
    return 1


def _docker_info(words: Sequence[str]) -> int:
    runtimes = _boot_facts()["stands_for"]["runtimes"]
    facts = {"Runtimes": {name: {} for name in runtimes}, "ServerVersion": "0", "OperatingSystem": _SAYS}
    plain = f"Runtimes: {' '.join(runtimes)}\nServer: {_SAYS}"
    print(json.dumps(facts) if any("json" in word for word in words) else plain)
    return 0


def _docker_inspect(words: Sequence[str]) -> int:
    form, names, rest = "", [], list(words)
    while rest:
        word = rest.pop(0)
        if word in ("-f", "--format", "--type"):
            value = rest.pop(0)
            form = form if word == "--type" else value
        elif word.startswith("--format="):
            form = word.partition("=")[2]
        elif not word.startswith("-"):
            names.append(word)
    states = [channels.read_container_state(name) for name in names]
    if None in states:
        missing = names[states.index(None)]
        print("[]")
        print(f"Error: No such object: {missing}", file=sys.stderr)
        return 1
    shown = [
        {
            "Id": state.name, "Name": f"/{state.name}", "Config": {"Image": state.image, "Cmd": list(state.command)},
            "State": {
                "Status": state.status, "Running": state.status == "running", "ExitCode": state.code, "Pid": state.pid,
                "OOMKilled": False, "Error": "", "StartedAt": state.started, "FinishedAt": state.finished,
            },
        }
        for state in states if state
    ]  # fmt: skip
    if form:
        for one in shown:
            print(_fill_template(form, one))
    else:
        print(json.dumps(shown))
    return 0


def _fill_template(form: str, shown: Any) -> str:
    """Fills in a Go template. Only paths and `json` are supported: `{{.State.Status}} {{json .State}}`."""
    text = ""
    for number, part in enumerate(form.replace("}}", "{{").split("{{")):
        if number % 2 == 0:
            text += part
            continue
        as_json, value = part.strip().startswith("json "), shown
        for step in part.strip().removeprefix("json ").strip().strip(".").split("."):
            value = value[step] if step else value
        is_text = isinstance(value, str) and not as_json
        text += value if is_text else json.dumps(value)
    return text


def _docker_list(words: Sequence[str]) -> int:
    files = sorted(channels.CONTAINERS.glob("*.json")) if channels.CONTAINERS.is_dir() else []
    states = [state for file in files if (state := channels.read_container_state(file.stem))]
    every = any(word in ("-a", "--all", "-aq") for word in words)
    for state in states:
        if every or state.status == "running":
            quiet = any(word in ("-q", "-aq", "--quiet") for word in words)
            print(state.name if quiet else f"{state.name}  {state.image}  {state.status}")
    return 0


def _docker_logs(words: Sequence[str]) -> int:
    rest, since = list(words), ""
    for index, word in enumerate(words):
        if word == "--since":
            since = words[index + 1]
    names = [word for word in rest if not word.startswith("-") and word != since]
    follows = any(word in ("-f", "--follow") for word in rest)
    times = any(word in ("-t", "--timestamps") for word in rest)
    return _print_log(names[-1] if names else "", follows, times, since)


def _print_log(name: str, follows: bool, times: bool, since: str = "") -> int:
    """Prints a container's log. With `follows`, until the container ends."""
    if channels.read_container_state(name) is None:
        print(f"Error response from daemon: No such container: {name}", file=sys.stderr)
        return 1
    with channels.log_file(name).open(newline="\n") as log:
        while True:
            state = channels.read_container_state(name)
            for line in log:
                moment, _, text = line.partition(" ")
                if moment >= since:
                    sys.stdout.write(line if times else text)
            sys.stdout.flush()
            if not follows or state is None or state.status != "running":
                return 0
            time.sleep(_LOOK_SECONDS)


def _docker_wait(words: Sequence[str]) -> int:
    for name in words:
        while (state := channels.read_container_state(name)) and state.status != "exited":
            time.sleep(_LOOK_SECONDS)
        if state is None:
            print(f"Error response from daemon: No such container: {name}", file=sys.stderr)
            return 1
        print(state.code)
    return 0


def _ask_and_print(program: str, words: Sequence[str]) -> int:
    answer = channels.ask_machine(program, arguments=list(words), folder=os.getcwd())
    if answer.follow:
        _print_log(answer.follow, follows=True, times=False)
        state = channels.read_container_state(answer.follow)
        return state.code if state else 0
    sys.stdout.write(answer.output)
    sys.stderr.write(answer.errors)
    return answer.code


_LOOKS: dict[str, Callable[[Sequence[str]], int]] = {
    "logs": _docker_logs, "inspect": _docker_inspect, "ps": _docker_list, "info": _docker_info, "version": _docker_info,
    "wait": _docker_wait,
}  # fmt: skip
ROWS: dict[str, Callable[[Sequence[str]], int]] = {
    "docker": _run_docker, "systemctl": partial(_ask_and_print, "systemctl"), "shutdown": _run_shutdown,
    "poweroff": _run_shutdown, "halt": _run_shutdown,
    "reboot": lambda words: _ask_and_print("machine", ["reboot"]), "cloud-init": _cloud_init,
    "fi_info": _run_fi_info,
}  # fmt: skip
