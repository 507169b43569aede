# SPDX-License-Identifier: Apache-2.0
"""Finds the programs `ip` and `nft`, which make the nodes' networks and enforce their rules.

If the machine lacks one, the package of its own release is unpacked into the cache, without root.
"""

from __future__ import annotations

import hashlib
import platform
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from localcloud.environments import apt, cache
from localcloud.environments.watched_commands import MakeError, MakeProgress

# The Debian package of each program.
PACKAGES: Mapping[str, str] = {"ip": "iproute2", "nft": "nftables"}
_SHOWS_VERSION = {"ip": "-V", "nft": "--version"}
# On Debian both are in folders that only root has in PATH.
_PATH = "/usr/sbin:/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin"
# The folders of programs in Debian's packages. `sbin/ip` comes late: it is a link to the machine's own `/bin/ip`.
_FOLDERS = ("bin", "usr/bin", "sbin", "usr/sbin")
# The beginning of apt's error message, which follows its log lines.
_APT_ERROR = "  E: "
# Starts the program with the libraries that came with it.
_WRAPPER = '#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} "$@"\n'


def find_network_tool(program: str) -> str | None:
    """The path of a program: the machine's own, otherwise the one in the cache."""
    if own := shutil.which(program, path=_PATH):
        return own
    made = _network_tools_folder() / "bin" / program
    return (
        str(made) if made.exists() and not cache.why_not_trusted(_network_tools_folder(), made.parent, made) else None
    )


def make_network_tools(tell: MakeProgress) -> None:
    """Fetches missing programs. MakeError if this machine cannot do that."""
    if all(map(find_network_tool, PACKAGES)):
        return
    folder = _network_tools_folder()
    with cache.lock_environment(folder, tell.say):
        if all(map(find_network_tool, PACKAGES)):
            return
        if why := cache.why_not_trusted(folder):
            raise MakeError(why)
        missing = [program for program in PACKAGES if not shutil.which(program, path=_PATH)]
        packages = [PACKAGES[program] for program in missing]
        cache.clear_folder(folder)
        (root := folder / "root").mkdir(parents=True)
        titles = " and ".join(packages)
        tell.say(f"fetching {titles}, which enforce security rules: 15 MB with Debian's index, once per machine")
        apt.fetch_debian_packages(packages, root, tell)
        # Each program is started by a script, which is tried once.
        into = folder / "wrappers"
        libraries = {str(file.parent) for place in ("lib", "usr/lib") for file in root.glob(f"{place}/*/lib*.so*")}
        into.mkdir()
        for program in missing:
            places = [root / place / program for place in _FOLDERS]
            real = next((place for place in places if place.is_file() and not place.is_symlink()), None)
            if real is None:
                raise MakeError(f"the package {PACKAGES[program]} has no program {program}")
            settings = {"libraries": shlex.quote(":".join(sorted(libraries))), "program": shlex.quote(str(real))}
            script = into / program
            script.write_text(_WRAPPER.format(**settings), "utf-8")
            script.chmod(0o755)
            tried = subprocess.run([script, _SHOWS_VERSION[program]], capture_output=True, text=True, check=False)
            if tried.returncode:
                raise MakeError(f"{program} was unpacked, but does not start: {tried.stderr.strip()[-300:]}")
        (folder / "wrappers").rename(folder / "bin")
        tell.say(f"{titles}: ready")


def make_network_tools_if_possible(tell: MakeProgress) -> None:
    """Fetches missing programs before a cloud starts. A failure is only printed: runs that need a program report it."""
    try:
        make_network_tools(tell)
    except (MakeError, OSError) as error:
        lines = str(error).splitlines()
        why = next((line.strip() for line in lines if line.startswith(_APT_ERROR)), lines[0])
        tell.say(f"{' and '.join(PACKAGES.values())} are not here and cannot be fetched: {why}")


def _network_tools_folder() -> Path:
    """The folder in the cache. Its name has the system's release, because libraries fit only one."""
    release = platform.freedesktop_os_release()
    recipe = repr((release.get("ID"), release.get("VERSION_ID"), platform.machine(), sorted(PACKAGES.items())))
    return cache.environments_cache() / f"network-tools-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
