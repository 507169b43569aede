# SPDX-License-Identifier: Apache-2.0
"""Simulates a machine with nothing but Debian, Python, make and git. It has its own root folder, mounts and processes,
and this machine's network.

Its mounts end with its processes. Only the Debian that later ones start from stays on this machine.
"""

import fcntl
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments.apt import suite_sources

ROOT = Path(__file__).parents[2]
_PACKAGES = ("python3", "python3-venv", "make", "git", "ca-certificates", "passwd")
# Files and variables of this machine without which a process cannot reach the network, pip's index and Go's modules.
_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
_NETWORK_VARIABLES = ("PIP_", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "SSL_CERT", "REQUESTS_CA", "CURL_CA")
# The tutorials beside a load of twenty take a tenth of two processors.
_LONGEST_SECONDS = 3600
_NUMBERS = {"root": 0, "user": 1000}
# Its arguments: the Debian folder, an empty folder, the initial files, the home, the cache of the engine, the user's
# number. Everything that is written is in memory (two gigabytes), and is lost with the mounts when the processes end.
_INSIDE = """
set -e
base=$1 room=$2 files=$3 home=$4 engine=$5 user=$6; shift 6
root=$room/root
mount -t tmpfs -o size=90% none "$room"
mkdir "$root" "$room/upper" "$room/work"
mount -t overlay -o "lowerdir=$base,upperdir=$room/upper,workdir=$room/work" none "$root"
cp -a --remove-destination "$files/." "$root/"
chown -R "$user:$user" "$root$home"
if [ -n "$engine" ]; then
  mount --bind "$engine" "$root$home/.cache/trainyard/engine"
  mount -o remount,bind,ro "$root$home/.cache/trainyard/engine"
fi
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mount -t tmpfs none "$root/tmp"
chmod 1777 "$root/dev/shm" "$root/tmp"
mkdir "$root/.old"
cd "$root"
pivot_root . .old
umount -l /.old
cd "$home/trainyard"
# A change of the user ends what `unshare --kill-child` asked for.
exec setpriv --pdeathsig KILL --reuid "$user" --regid "$user" --init-groups "$@"
"""


@dataclass(frozen=True)
class BareMachine:
    """`release`: a suite of Debian; empty: this machine's. `packages`: further packages. `cold`: without the engine
    that this machine has built."""

    release: str = ""
    packages: Sequence[str] = ()
    user: str = "user"
    cold: bool = False

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on it, in a copy of this checkout."""
        base, home = self._base(), "/root" if self.user == "root" else f"/home/{self.user}"
        engine = _cache() / "engine"
        warm = "" if self.cold or not engine.is_dir() else str(engine)
        with tempfile.TemporaryDirectory(prefix="trainyard-bare-") as folder:
            files, room = Path(folder) / "files", Path(folder) / "room"
            room.mkdir()
            _copy_checkout(files / home[1:] / "trainyard")
            if warm:
                (files / home[1:] / ".cache/trainyard/engine").mkdir(parents=True)
            _copy_network_files(files)
            words = [str(base), str(room), str(files), home, warm, str(_NUMBERS[self.user]), *command]
            return subprocess.run(
                ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                 "bash", "-c", _INSIDE, "bash", *words],
                env=_environment(home, self.user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=_LONGEST_SECONDS, check=False,
            )  # fmt: skip

    def _base(self) -> Path:
        """The Debian folder that such machines start from. Making it takes a minute, once."""
        release = self.release or platform.freedesktop_os_release()["VERSION_CODENAME"]
        packages = ",".join((*_PACKAGES, *self.packages))
        base = _cache() / "bare-machines" / "-".join((release, *self.packages))
        base.parent.mkdir(parents=True, exist_ok=True)
        with base.with_name(f".{base.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not base.exists():
                draft = base.with_name(f".{base.name}.new")
                shutil.rmtree(draft, ignore_errors=True)
                words = [
                    "mmdebstrap",
                    "--quiet",
                    "--variant=minbase",
                    f"--include={packages}",
                    release,
                    str(draft),
                    "-",
                ]
                subprocess.run(words, input=suite_sources(release)[0], text=True, check=True, timeout=_LONGEST_SECONDS)
                subprocess.run(
                    ["chroot", draft, "useradd", "--create-home", f"--uid={_NUMBERS['user']}", "user"], check=True
                )
                draft.rename(base)
        return base


def why_impossible() -> str:
    """Why a bare machine cannot be made here; empty if it can."""
    if os.geteuid():
        return "only root makes a machine"
    if platform.freedesktop_os_release().get("ID") != "debian":
        return "a Debian makes a Debian"
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "none", "/mnt"],
        capture_output=True,
        text=True,
    )
    return tried.stderr.strip()


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard"


def _copy_checkout(into: Path) -> None:
    """The files of this checkout as they are now, without what git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name, follow_symlinks=False)


def _copy_network_files(files: Path) -> None:
    for name in _NETWORK_FILES:
        if Path(name).exists():
            (files / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, files / name[1:])


def _environment(home: str, user: str) -> Mapping[str, str]:
    needed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_NETWORK_VARIABLES) or name.lower().endswith("_proxy")
    }
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {**needed, "HOME": home, "USER": user, "PATH": path, "LANG": "C.UTF-8", "TERM": "dumb"}


def without(command: str, *files: str) -> tuple[str, ...]:
    """A command that first deletes files of the machine."""
    return ("sh", "-ec", f"rm -rf {shlex.join(files)}; exec {command}")
