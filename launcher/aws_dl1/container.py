# SPDX-License-Identifier: Apache-2.0
"""The first program of a container: starts sshd, copies the code, sets variables, then becomes the launcher.

It runs in the image's own Python, whatever the image is. The files that the machine mounts for it are read-only.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from launcher import network
from launcher.aws_dl1 import fabric, host_nic
from launcher.aws_dl1.identity import CODE_VARIABLE, NO_EFA_VARIABLE
from launcher.aws_dl1.machine import options, ssh
from launcher.aws_dl1.machine.facts import write_atomically
from launcher.compatibility import unlink_if_there
from launcher.errors import LaunchError, MissingError
from launcher.printing import LinePrinter
from launcher.status import TRANSPORT_VARIABLE

PORT_VARIABLE = "TRAINYARD_SSH_PORT"
VARIABLES, SSH = "variables.json", "ssh"
_SSHD = ("/usr/sbin/sshd", "/usr/local/sbin/sshd")
_PACKAGES = (
    ["dpkg-query", "--show", "--showformat=${Version}", "rdma-core"],
    ["rpm", "-q", "--qf", "%{VERSION}", "rdma-core"],
)
_SSHD_SECONDS = 20.0
# sshd's whole configuration. The image's own, if it has one, is for another port.
_CONFIGURATION = """\
Port {port}
HostKey {key}
PidFile none
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AuthorizedKeysFile .ssh/authorized_keys
UsePAM no
Subsystem sftp internal-sftp
LogLevel FATAL
"""


def main() -> int:
    """Becomes the launcher. Returns the exit code if it cannot."""
    say = LinePrinter("container")
    environment = dict(os.environ)
    start = Path(options.START)
    home = Path(environment.get("HOME") or "/root")
    try:
        prepare_container(environment, start, Path(options.CODE), home, say)
    except (LaunchError, MissingError, OSError) as error:
        say(str(error))
        return 78
    os.execve(
        sys.executable, [sys.executable, "-I", "-c", options.isolated_program("launcher.start", "[]")], environment
    )
    return 0


def prepare_container(environment: dict[str, str], start: Path, code: Path, home: Path, say: LinePrinter) -> None:
    """Does everything before the launcher starts. Leaves variables that the stack sets as they are."""
    variables = json.loads((start / VARIABLES).read_text("utf-8")) if (start / VARIABLES).exists() else {}
    environment.update(variables)
    kernel = environment.get(options.KERNEL_VARIABLE) or platform.release()
    for name, value in options.fork_safety(kernel, rdma_core()).items():
        environment.setdefault(name, value)
    path = options.library_path(
        environment.get("LD_LIBRARY_PATH", ""), list(filter(os.path.isdir, (host_nic.WRAPPER, *options.LIBRARIES)))
    )
    if path:
        environment["LD_LIBRARY_PATH"] = path
    chooses_efa = host_nic.chooses_efa(environment)
    # How data moves between machines is said to the log, and to the node's status object.
    if options.EFA_VARIABLE in environment:
        interfaces = int(environment[options.EFA_VARIABLE])
        found = fabric.detect_fabric(kernel, environment)
        words = fabric.fabric_words(interfaces, found)
    else:
        found = fabric.detect_fabric(kernel, environment, host_nic.FOLDERS)
        words = host_nic.apply_transport(environment, found)
    if chooses_efa and found.lacks_efa:
        environment[NO_EFA_VARIABLE] = f"libfabric {found.libfabric} of the image finds no EFA provider"
    environment[TRANSPORT_VARIABLE] = words
    say(f"between machines: {words}")
    if code.is_dir():
        environment[CODE_VARIABLE] = str(working_copy(code, home))
    if (start / SSH).is_dir():
        serve_ssh(environment, start / SSH, home, say)


def rdma_core() -> str:
    """The version of rdma-core in the image, from its package manager; empty if that knows none."""
    for words in _PACKAGES:
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=30, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return done.stdout.decode(errors="replace").strip()
    return ""


def working_copy(code: Path, home: Path) -> Path:
    """A copy that training may write to, new for each container."""
    target = home / "trainyard-code"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(code, target)
    return target


def serve_ssh(environment: Mapping[str, str], shown: Path, home: Path, say: LinePrinter) -> None:
    """Starts the image's sshd, if it has one: mpirun reaches the other nodes by it."""
    ssh.install_files(home / ".ssh", shown)
    sshd = next((program for program in _SSHD if os.access(program, os.X_OK)), "")
    if not sshd:
        say("the image has no sshd, so other nodes cannot reach this container by SSH: most scripts do not need that")
        return
    port, key, configuration = environment[PORT_VARIABLE], home / ".ssh" / "host_key", home / ".ssh" / "sshd_config"
    unlink_if_there(key)
    write_atomically(configuration, _CONFIGURATION.format(port=port, key=key).encode())
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    made = subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False,
    )  # fmt: skip
    if made.returncode:
        raise MissingError(f"no host key can be made for sshd: {made.stdout.decode(errors='replace').strip()}")
    # In this session, so that sshd always ends with the container.
    process = subprocess.Popen([sshd, "-D", "-e", "-f", str(configuration)], stdin=subprocess.DEVNULL)
    until = time.monotonic() + _SSHD_SECONDS
    while not network.port_answers("127.0.0.1", int(port)):
        if process.poll() is not None or time.monotonic() > until:
            raise MissingError(f"sshd cannot be started on port {port}: see its output above")
        time.sleep(0.02)
    say(f"sshd listens on port {port}")
