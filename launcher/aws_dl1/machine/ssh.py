# SPDX-License-Identifier: Apache-2.0
"""Password-less SSH between the nodes of a cluster: one RSA key for all of them, kept as a secret."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from launcher.aws_dl1.machine.commands import CommandError, run_program
from launcher.aws_dl1.machine.facts import write_atomically
from launcher.compatibility import unlink_if_there
from launcher.errors import MissingError

_PRIVATE, _PUBLIC, _AUTHORIZED, _CONFIG = "id_rsa", "id_rsa.pub", "authorized_keys", "config"
_COMMENT = "trainyard-cluster"
# New machines have new host keys, so these are not checked. The security group keeps others out of this network.
_EVERYWHERE = ("StrictHostKeyChecking no", "UserKnownHostsFile /dev/null", "LogLevel ERROR")
_BEGIN, _END = "# trainyard: begin", "# trainyard: end"
# How far apart the ports of the containers on one host are, and how many ports are tried.
_STEP, _TRIES = 1000, 60
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


@dataclass(frozen=True)
class Peer:
    """The address of a node's sshd, which runs in its container."""

    name: str
    address: str
    port: int


def ssh_config(peers: Mapping[str, Peer], inside: bool) -> str:
    """~/.ssh/config. Outside of containers it forwards the agent; inside it has each peer's port."""
    lines = []
    for peer in peers.values() if inside else ():
        lines += [f"Host {peer.name} {peer.address}", f"    HostName {peer.address}", f"    Port {peer.port}"]
    everywhere = [*_EVERYWHERE, *(() if inside else ("ForwardAgent yes",))]
    return "\n".join([*lines, "Host *", *(f"    {line}" for line in everywhere)]) + "\n"


@dataclass(frozen=True)
class KeyPair:
    """Both halves, in the format of ssh's files."""

    private: str = ""
    public: str = ""


def key_pair(private: str, folder: Path) -> KeyPair:
    """Derives the public half from the private one. `folder` holds the key meanwhile."""
    text = private.strip() + "\n"
    file = folder / "key"
    write_atomically(file, text.encode())
    try:
        # Without the comment that a key file may have.
        public = " ".join(run_program(["ssh-keygen", "-y", "-P", "", "-f", str(file)]).split()[:2])
    except CommandError as error:
        raise MissingError(f"the cluster's SSH key cannot be used ({error}): let its stack make a new one") from None
    finally:
        unlink_if_there(file)
    return KeyPair(text, f"{public} {_COMMENT}\n")


def write_files(folder: Path, key: KeyPair, configuration: str) -> None:
    """Writes the files that a container installs for its own user."""
    write_atomically(folder / _PRIVATE, key.private.encode())
    write_atomically(folder / _PUBLIC, key.public.encode())
    write_atomically(folder / _CONFIG, configuration.encode())


def install_files(folder: Path, shown: Path) -> None:
    """Installs the files that `write_files` wrote; runs in the container."""
    key = KeyPair(*((shown / name).read_text("utf-8") for name in (_PRIVATE, _PUBLIC)))
    install_ssh_files(folder, key, (shown / _CONFIG).read_text("utf-8"))


def install_ssh_files(folder: Path, key: KeyPair, configuration: str) -> None:
    """Installs key and configuration with the modes that ssh requires. Other lines in these files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(_FOLDER_MODE)
    write_atomically(folder / _PRIVATE, key.private.encode(), _FILE_MODE)
    write_atomically(folder / _PUBLIC, key.public.encode(), _FILE_MODE)
    write_atomically(
        folder / _AUTHORIZED, _with_our_lines(folder / _AUTHORIZED, key.public.splitlines()).encode(), _FILE_MODE
    )
    write_atomically(
        folder / _CONFIG, _with_our_lines(folder / _CONFIG, configuration.splitlines()).encode(), _FILE_MODE
    )


def _with_our_lines(file: Path, lines: list[str]) -> str:
    """The content of a user's file with our lines in it. They replace those of the last time."""
    kept = []
    ours = False
    for line in file.read_text("utf-8", "replace").splitlines() if file.exists() else ():
        ours = ours or line == _BEGIN
        if not ours:
            kept.append(line)
        ours = ours and line != _END
    # ssh takes the first value of an option that it meets.
    return "\n".join([_BEGIN, *lines, _END, *kept]) + "\n"


def free_port(first: int) -> int:
    """The first port of 3022, 4022, 5022, … on which nobody listens on this host."""
    for port in range(first, min(first + _STEP * _TRIES, 1 << 16), _STEP):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
    raise MissingError(f"no port for SSH is free on this machine: tried {first} and every {_STEP}th after it")
