# SPDX-License-Identifier: Apache-2.0
"""Debian packages: unpacked into a folder without root, or installed on the machine by root.

For a folder, apt with a state of its own fetches the packages, and dpkg-deb unpacks them. The machine's own lists name
the mirror, and its keyring verifies the packages. No script of a package is run. Root installs packages only if the
user asks for it.
"""

from __future__ import annotations

import functools
import os
import platform
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments.watched_commands import MakeError, MakeProgress, run_watched

_STATUS = Path("/var/lib/dpkg/status")
_KEYRINGS = tuple(
    Path(f"/usr/share/keyrings/debian-archive-keyring.{ending}") for ending in ("pgp", "gpg")
)  # Debian 13 has both names, Debian 12 the second
_NO_LISTS = (
    "no mirror of Debian in this machine's lists of packages\n"
    "Name one in /etc/apt/sources.list, or in a file of /etc/apt/sources.list.d"
)
_KEYS_REMEDY = "As root: apt-get install debian-archive-keyring"
# Lists the sources in the machine's lists, even if their indexes have never been fetched.
_LISTED = ("indextargets", "--no-release-info", "Created-By: Packages")
_FORMAT = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
# The fields by which apt treats a package as installed. Without its dependencies, apt does not ask for those.
_ASSUMED = ("Package", "Version", "Architecture", "Multi-Arch", "Provides")
# These come after the machine's own settings: its proxy stays in force, and its hooks, which expect root, are removed.
_SETTINGS = """#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
APT::Sandbox::User "";
APT::Install-Recommends "false";
APT::Status-Fd "1";
APT::Get::List-Cleanup "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Dir::Cache "{folder}/cache";
Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
"""
_ONLY_OURS = """Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "{folder}/sources";
"""
# Another apt may hold the lock, or delete the archives that this one has fetched. So it waits, and retries.
_WAIT = ("-o", "DPkg::Lock::Timeout=900")
_TRIES = 3
_UNFINISHED = ("half-installed", "unpacked", "half-configured")


@dataclass(frozen=True)
class _Apt:
    """An apt that keeps its settings, state and cache in a folder of its own."""

    folder: Path

    def run(self, words: Sequence[str], tell: MakeProgress, title: str) -> None:
        run_watched(["apt-get", *self._settings(), "-q", "-y", *words], tell, title, {"LC_ALL": "C.UTF-8"})

    def show(self, packages: Sequence[str]) -> str:
        return _capture_output(["apt-cache", *self._settings(), "show", "--no-all-versions", *packages])

    def _settings(self) -> list[str]:
        return ["-c", str(self.folder / "apt.conf")]


def fetch_debian_packages(
    packages: Sequence[str], into: Path, tell: MakeProgress, suite: str = "", assumed: Sequence[str] = ()
) -> None:
    """Unpacks packages, and what they depend on, into the folder `into`.

    Without a suite they are from the machine's own release, without packages that the machine has already. With a
    suite, such as trixie, they are from that suite of Debian and complete, so that they use nothing of the machine.
    `assumed`: packages to leave out although others depend on them.
    """
    require_apt(suite)
    folder = into / ".apt"
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("state/lists/partial", "cache/archives/partial", "sources"):
        (folder / name).mkdir(parents=True)
    try:
        apt = _Apt(folder)
        # apt's settings, and its list of installed packages.
        settings = _SETTINGS + (_ONLY_OURS if suite else "") + "".join(_unwanted_indexes())
        (apt.folder / "apt.conf").write_text(settings.replace("{folder}", str(apt.folder)), "utf-8")
        present = "" if suite or not _STATUS.exists() else _STATUS.read_text("utf-8")
        (apt.folder / "status").write_text(present, "utf-8")
        errors = _fetch_index(apt, tell, suite)
        if assumed:
            _mark_as_installed(apt, assumed)
        try:
            apt.run(["install", "--download-only", "--reinstall", *packages], tell, "fetching Debian packages")
        except MakeError as error:
            raise MakeError(f"{errors}\n{error}".strip()) from None
        for archive in sorted((folder / "cache" / "archives").glob("*.deb")):
            run_watched(["dpkg-deb", "-x", str(archive), str(into)], tell, "unpacking Debian packages")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def require_apt(suite: str = "") -> None:
    """MakeError if this machine cannot fetch packages of a suite, or of its own release. Sends no request."""
    for program in ("apt-get", "dpkg-deb"):
        if not shutil.which(program):
            raise MakeError(f"{program} not found: this needs Debian, or a system that is made from it")
    if suite:
        suite_sources(suite)


def _mark_as_installed(apt: _Apt, packages: Sequence[str]) -> None:
    """Makes apt treat packages as installed, in the version of the index. They are on hold, because apt would otherwise
    replace them: their stanzas are shorter than those of the index."""
    stanzas = apt.show(packages).split("\n\n")
    with (apt.folder / "status").open("a", encoding="utf-8") as status:
        for stanza in filter(None, stanzas):
            lines = [line for line in stanza.splitlines() if line.partition(":")[0] in _ASSUMED]
            status.write("\n".join([*lines, "Status: hold ok installed\n\n"]))


def _unwanted_indexes() -> Iterator[str]:
    """The indexes of icons and descriptions, which desktops fetch: they are many times larger than the packages'
    index."""
    for line in _capture_output(["apt-config", "dump"]).splitlines():
        name, _, _value = line.partition(" ")
        parts = name.split("::")
        if parts[:3] == ["Acquire", "IndexTargets", "deb"] and len(parts) == 4 and parts[3] != "Packages":
            yield f'{name}::DefaultEnabled "false";\n'


def suite_sources(suite: str) -> list[str]:
    """Entries for apt's lists with a suite of Debian, one for each mirror in the machine's own lists.

    apt itself reads the machine's lists, because they have two formats. Lists of other vendors may look like mirrors of
    Debian, so the likeliest one comes first.
    """
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise MakeError(f"this machine is {release.get('NAME', 'not Debian')}: its lists name no mirror of Debian")
    own = {release.get("VERSION_CODENAME", ""), release.get("VERSION_ID", ""), "stable", "oldstable", "testing", "sid"}
    rows = [line.split() for line in _list_package_sources().splitlines()]
    mirrors = dict.fromkeys(mirror for mirror, named, part in rows if named in own and part == "main")
    if not mirrors:
        raise MakeError(_NO_LISTS)
    keyring = next(filter(Path.exists, _KEYRINGS), None)
    if keyring is None:
        raise MakeError(f"Debian's keys are missing, which verify its packages\n{_KEYS_REMEDY}")
    likely = sorted(mirrors, key=lambda mirror: "debian" not in mirror.split("/", 3)[-1])
    return [f"Types: deb\nURIs: {one}\nSuites: {suite}\nComponents: main\nSigned-By: {keyring}\n" for one in likely]


@functools.cache
def _list_package_sources() -> str:
    """Caches apt's reading of its lists, which takes most of a second, for commands about several environments."""
    return _capture_output(["apt-get", *_LISTED, "--format", _FORMAT])


def _fetch_index(apt: _Apt, tell: MakeProgress, suite: str) -> str:
    """Fetches the index. Returns errors that may not matter, such as servers of other vendors that do not answer."""
    if not suite:
        if not _capture_output(["apt-get", *_LISTED]):
            raise MakeError(_NO_LISTS)
        return _try_update(apt, tell)
    failures = []
    for text in suite_sources(suite):
        (apt.folder / "sources" / "suite.sources").write_text(f"{text}Targets: Packages\n", "utf-8")
        failures.append(_try_update(apt, tell))
        if not failures[-1]:
            return ""
    raise MakeError("\n".join(failures))


def _try_update(apt: _Apt, tell: MakeProgress) -> str:
    try:
        apt.run(["-o", "APT::Update::Error-Mode=any", "update"], tell, "fetching the index of Debian's packages")
    except MakeError as error:
        return str(error)
    return ""


def _capture_output(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def unfinished_packages(packages: Iterable[str]) -> tuple[str, ...]:
    """The packages that dpkg has begun to install, and not finished. Some of their files may exist already."""
    names = list(packages)
    if not names or shutil.which("dpkg-query") is None:
        return ()
    words = ["dpkg-query", "--show", "--showformat", "${Package} ${db:Status-Status}\n", *names]
    listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout.split("\n")
    states = dict(line.split(" ", 1) for line in listed if " " in line)
    return tuple(name for name in names if states.get(name) in _UNFINISHED)


def explain_unfinished(packages: Sequence[str]) -> tuple[str, str]:
    """The problem with these packages, and the remedy."""
    reason = f"apt has not finished installing {', '.join(packages)}"
    return reason, "wait until it has ended and try again; if it was interrupted: sudo dpkg --configure -a"


def install_command(packages: Sequence[str]) -> str:
    return shlex.join(["apt-get", "install", "--no-install-recommends", *packages])


def install_packages(packages: Sequence[str], tell: MakeProgress) -> None:
    """Installs packages, and shows progress. Fetches the package lists first, because a new machine has none."""
    tell.say(f"installing Debian packages: {', '.join(packages)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", *_WAIT, "install", "-y", "-q", "--no-install-recommends", *packages]
    for attempt in range(1, _TRIES + 1):
        try:
            run_watched(["apt-get", *_WAIT, "update", "-q"], tell, "apt-get update", quiet)
            return run_watched(command, tell, "apt-get install", quiet)
        except MakeError:
            if attempt == _TRIES:
                raise
            tell.say("apt-get failed: trying again")
    return None
