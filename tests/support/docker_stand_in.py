# SPDX-License-Identifier: Apache-2.0
"""Replacements for `docker` and other programs of a DL1 machine, for tests whose machines are processes.

A container is `sh -c $COMMAND` with the variables that `docker run` was given. It goes on when its caller is killed, as
docker's containers do. The file `calls` has the arguments of each call.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

STATE = "MACHINE_STATE"
_PROGRAMS = ("docker", "fi_info", "hl-smi", "shutdown")


def install(folder: Path) -> Path:
    """Makes a folder for PATH that has all of these programs."""
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for name in _PROGRAMS:
        program = bin_folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{__file__}" {name} "$@"\n')
        program.chmod(0o755)
    return bin_folder


def main(name: str, words: list[str]) -> int:
    folder = Path(os.environ[STATE])
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps([name, *words]) + "\n")
    broken = folder / f"broken-{name}"
    if broken.exists():
        print(broken.read_text(), file=sys.stderr)
        return 1
    if name == "docker":
        return _DOCKER[words[0]](folder, words[1:])
    if name == "shutdown":
        (folder / "down").touch()
    if name == "hl-smi":
        print("\n".join(map(str, range(8))))
    if name == "fi_info":
        for number in range(int(os.environ.get("EFA_INTERFACES", "4"))):
            print("".join(f"provider: efa\n    domain: rdmap{number}s27-{way}\n" for way in ("rdm", "dgrm")))
    return 0


def _run(folder: Path, words: list[str]) -> int:
    name = next(word.partition("=")[2] for word in words if word.startswith("--name="))
    if (folder / name).exists():
        print(f"docker: Conflict. The container name {name} is already in use", file=sys.stderr)
        return 125
    variables = {}
    for index, word in enumerate(words):
        if word == "-e":
            key, _, value = words[index + 1].partition("=")
            variables[key] = value
        if word.startswith("--env-file="):
            for line in Path(word.partition("=")[2]).read_text().splitlines():
                key, _, value = line.partition("=")
                variables[key] = value
    (folder / name).mkdir()
    shown = {word.split(":")[1]: word.partition("=")[2].split(":")[0] for word in words if word.startswith("--volume=")}
    variables["SHOWN"] = json.dumps(shown)
    if os.fork() == 0:
        os.setsid()
        for number in (0, 1, 2):
            os.close(number)
            os.open(os.devnull, os.O_RDWR)
        _live(folder / name, {**variables, STATE: str(folder), "PATH": os.environ["PATH"]})
        os._exit(0)
    while not (folder / name / "state").exists():
        time.sleep(0.005)
    print(name)
    return 0


def _live(folder: Path, variables: dict[str, str]) -> None:
    process = subprocess.Popen(
        ["sh", "-c", variables.get("COMMAND", "true")], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    # docker sends the signal to the first process only; a shell does not forward it.
    _write(folder, {"Status": "running", "ExitCode": 0, "Pid": process.pid, "OOMKilled": False, "Error": ""})
    assert process.stdout is not None
    with (folder / "log").open("a") as log:
        for line in process.stdout:
            moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
            log.write(f"{moment} {line.decode(errors='replace')}")
            log.flush()
    code = process.wait()
    _write(folder, {"Status": "exited", "ExitCode": code if code >= 0 else 128 - code, "OOMKilled": False, "Error": ""})


def _write(folder: Path, state: dict[str, object]) -> None:
    (folder / "state.new").write_text(json.dumps(state))
    (folder / "state.new").rename(folder / "state")


def _state(folder: Path, name: str) -> dict[str, object] | None:
    try:
        return dict(json.loads((folder / name / "state").read_text()))
    except FileNotFoundError:
        print(f"Error: No such container: {name}", file=sys.stderr)
        return None


def _inspect(folder: Path, words: list[str]) -> int:
    state = _state(folder, words[-1])
    print(json.dumps(state))
    return 0 if state else 1


def _stop(folder: Path, words: list[str]) -> int:
    state = _state(folder, words[-1])
    if not state:
        return 1
    if state["Status"] == "running":
        os.kill(int(str(state["Pid"])), signal.SIGTERM)
        while (_state(folder, words[-1]) or {"Status": ""})["Status"] == "running":
            time.sleep(0.01)
    return 0


def _remove(folder: Path, words: list[str]) -> int:
    if not _state(folder, words[-1]):
        return 1
    _stop(folder, words)
    (folder / words[-1]).rename(folder / f".gone-{words[-1]}-{threading.get_native_id()}")
    return 0


def _logs(folder: Path, words: list[str]) -> int:
    since = words[words.index("--since") + 1] if "--since" in words else ""
    file = folder / words[-1] / "log"
    position = 0
    while True:
        ended = (_state(folder, words[-1]) or {"Status": "exited"})["Status"] == "exited"
        if file.exists():
            with file.open() as log:
                log.seek(position)
                for line in log:
                    if not line.endswith("\n") and not ended:
                        break
                    position += len(line.encode())
                    if line.partition(" ")[0] >= since:
                        sys.stdout.write(line)
        sys.stdout.flush()
        if ended:
            return 0
        time.sleep(0.02)


def _wait(folder: Path, words: list[str]) -> int:
    while (_state(folder, words[-1]) or {"Status": ""})["Status"] == "running":
        time.sleep(0.02)
    return 0


def _info(folder: Path, words: list[str]) -> int:
    print(json.dumps({"Runtimes": {"runc": {}, os.environ.get("RUNTIME", "habana"): {}}}))
    return 0


def _quiet(folder: Path, words: list[str]) -> int:
    if "--password-stdin" in words:
        (folder / "password").write_text(sys.stdin.read())
    missing = folder / "missing-image"
    if missing.exists():
        print("Error response from daemon: manifest unknown", file=sys.stderr)
        return 1
    return 0


_DOCKER = {
    "info": _info, "inspect": _inspect, "login": _quiet, "logs": _logs, "pull": _quiet, "rm": _remove, "run": _run,
    "stop": _stop, "wait": _wait,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
