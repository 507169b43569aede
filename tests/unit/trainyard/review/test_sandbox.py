# SPDX-License-Identifier: Apache-2.0
"""A hostile program under review learns nothing, changes nothing, reaches nobody, and is ended."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainyard.review import recorder, sandbox
from trainyard.review.recorder import RecordingError, RecordingProcess

# Tries each of these, and answers with what it got. `where`: places that the test has prepared.
_TRIES = """\
import glob, json, os, pwd, socket, sys

where = json.load(open(os.path.join(os.path.dirname(__file__), "where.json")))

def environments():
    return "".join(open(path, errors="replace").read() for path in glob.glob("/proc/[0-9]*/environ"))

def home_by_pwd():
    return open(os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".profile")).read()

def write(path):
    with open(path, "w") as file:
        file.write("x")
    return path

def link():
    os.symlink(where["secret"], "link")
    return open("link").read()

def connect():
    with socket.create_connection(("127.0.0.1", where["port"]), timeout=5):
        return "connected"

def connect_by_file():
    with socket.socket(socket.AF_UNIX) as opened:
        opened.connect(where["socket"])
        return "connected"

def become_root():
    os.setuid(0)
    return "root"

def new_namespace():
    import ctypes
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")
    return "namespace"

tries = {
    "environments of others": environments, "the home by its entry": home_by_pwd,
    "a file of the home": lambda: open(where["secret"]).read(), "by a link": link,
    "credentials in the repository": lambda: open(where["config"]).read(),
    "write into the checkout": lambda: write(where["tree"] + "/new"),
    "write into the temporary folder": lambda: os.listdir("/tmp") and write("/tmp/new"),
    "write to /etc": lambda: write("/etc/new"), "connect to loopback": connect, "connect by file": connect_by_file,
    "kill others": lambda: os.kill(where["pid"], 9) or "killed",
    "become root": become_root, "make a namespace": new_namespace,
    "read the shadow file": lambda: open("/etc/shadow").read(),
    "read kernel settings": lambda: write("/proc/sys/kernel/core_pattern"),
}
got = {}
os.chdir(os.environ["HOME"])
for name, attempt in tries.items():
    try:
        got[name] = attempt()
    except Exception:
        pass
sys.stdin.readline()
print(json.dumps({"error": json.dumps(got)}), flush=True)
"""
_SECRET = "topsecret123"


def hostile_tree(folder: Path, program: str) -> Path:
    """A checkout whose program that records is this one."""
    place = folder / "tree" / "trainyard" / "review"
    place.mkdir(parents=True)
    (place.parent / "__init__.py").touch()
    (place / "__init__.py").touch()
    (place / "record.py").write_text(program, "utf-8")
    return folder / "tree"


def errors_of(tree: Path) -> str:
    with RecordingProcess(tree) as recording:
        if recording.not_isolated:
            pytest.skip(f"this machine allows no sandboxes: {recording.not_isolated}")
        with pytest.raises(RecordingError) as caught:
            recording.record(tree / "Pulumi.demo.yaml", "oci")
    return str(caught.value)


@contextmanager
def victim() -> Iterator[int]:
    """Another process of the same account, with a secret among its variables."""
    command = [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"]
    environment = {"AWS_SECRET_ACCESS_KEY": _SECRET}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        yield process.pid
        assert process.poll() is None
        process.stdin.write(b"\n")
        process.stdin.flush()


def test_no_attempt_of_a_program_under_review_succeeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / ".aws").mkdir(parents=True)
    for file in (home / ".profile", home / ".aws" / "credentials"):
        file.write_text(_SECRET)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", _SECRET)
    tree = hostile_tree(tmp_path, _TRIES)
    (tree / ".config").symlink_to("/nowhere")
    (tree / ".ssh").symlink_to(home)
    (tree / ".git").mkdir()
    (tree / ".git" / "config").write_text(_SECRET)
    with victim() as pid, socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as by_file:
        by_file.bind(str(home / "agent"))
        by_file.listen()
        where = {
            "secret": str(home / ".aws" / "credentials"), "port": server.getsockname()[1], "tree": str(tree),
            "pid": pid,
            "socket": str(home / "agent"), "config": str(tree / ".git" / "config"),
        }  # fmt: skip
        (tree / "trainyard" / "review" / "where.json").write_text(json.dumps(where))
        got = json.loads(errors_of(tree))
    # It reads its own variables, and those of the sandbox's first process, of which none is a secret.
    assert _SECRET not in got.pop("environments of others", "")
    assert got == {}
    assert not os.path.lexists("/tmp/new")


_FORKS = """
import os, time
for _ in range(100):
    if not os.fork():
        time.sleep(60)
time.sleep(60)
"""
_KEEPS = """
import time
kept = bytearray(300 << 20)
for at in range(0, len(kept), 4096):
    kept[at] = 1
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        # The kernel refuses them, or, for root without control groups, the watcher ends the program.
        (_FORKS, "Resource temporarily unavailable|it had \\d+ processes and threads"),
        (_KEEPS, "of memory|used all its memory"),
        ("import sys\nwhile True: sys.stderr.write(1000 * 'x')\n", "it printed more than"),
        ("import sys\nwhile True: sys.stdout.write(1000 * 'x')\n", "wrote no whole answer of at most 1 MiB"),
        ("import time\ntime.sleep(60)\n", "it did not answer within 5 s"),
        ("file = open('/tmp/x', 'w')\n", "Read-only file system"),
    ],
)
def test_a_program_that_takes_too_much_is_ended(
    program: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "MEMORY_LIMIT", 200 << 20)
    monkeypatch.setattr(sandbox, "ERRORS_LIMIT", 1 << 20)
    monkeypatch.setattr(sandbox, "PROCESS_LIMIT", 40)
    monkeypatch.setattr(recorder, "LONGEST_ANSWER", 1 << 20)
    monkeypatch.setattr(recorder, "RECORDING_SECONDS", 5 if "answer within" in words else 60)
    assert re.search(words, errors_of(hostile_tree(tmp_path, program)))


def test_without_a_sandbox_the_program_runs_and_the_reason_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "module_command", lambda *_: [sys.executable, "-I", "-S", "-c", ""])
    answer = 'import sys\nsys.stdin.readline()\nprint(\'{"error": "it ran"}\', flush=True)\n'
    tree = hostile_tree(tmp_path, answer)
    with RecordingProcess(tree) as recording:
        assert recording.not_isolated == "the process that supervises it ended"
        with pytest.raises(RecordingError, match="it ran"):
            recording.record(tree / "Pulumi.demo.yaml", "oci")


def test_no_repository_does_without_the_sandbox_by_what_it_contains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = hostile_tree(tmp_path, "")
    (tree / "link").symlink_to(tree / ".git")
    # As if a link had been found where a folder was looked for.
    monkeypatch.setattr(sandbox, "_HIDDEN", ("link",))
    monkeypatch.setattr(Path, "is_dir", lambda path: path.name == "link" or os.path.isdir(path))
    monkeypatch.setattr(Path, "resolve", lambda path, strict=False: path)
    with pytest.raises(RecordingError, match="its sandbox cannot be made, though others can"), RecordingProcess(tree):
        pass
