# SPDX-License-Identifier: Apache-2.0
"""The local environment in place of a container image: its files, its Python, and the variables of its processes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environments import cache, layout
from localcloud.environments.environment_rows import environment_rows
from localcloud.environments.find import LAYER, MissingEnvironment, base_interpreters, find_environment
from localcloud.environments.layout import SETTINGS, Layout
from localcloud.hosts.assignment import CannotStartError
from localcloud.hosts.users import ID_IN_NODE

USER = "datascience"
HOME = f"/home/{USER}"
TEMPORARY = "/tmp"
# The files a run gets: its token, and the list of the nodes of its cluster.
GIVEN = "/run/trainyard"
# The folder with the launcher. Nodes see nothing else of the checkout.
PROJECT = "/opt/trainyard"
# Files of `/etc`. Names are resolved by files and DNS only, because other services of the machine are out of reach.
FILES = {
    "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\n{USER}:x:{ID_IN_NODE}:{ID_IN_NODE}:{USER}:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\n{USER}:x:{ID_IN_NODE}:\nnogroup:x:65534:\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
    # The address of OCI's resolver, which fails at once here. With the machine's own, a dropped packet would hang.
    "resolv.conf": "nameserver 169.254.169.254\noptions timeout:1 attempts:1\n",
}
DEFAULT_ENVIRONMENT = "own"
_PASSED_ON = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "LD_LIBRARY_PATH")
# All nodes share this machine's processors, so threads must not spin while they wait for others.
_SHARING = {"OMP_WAIT_POLICY": "PASSIVE"}
# A file's path on this machine, and its path in the node. Only the last part of the first path may be a link, so that
# links cannot show nodes other files.
Shown = tuple[str, str]
_NAMES = ("python", "python3")
# The file of launcher/images/system.sh: in isolated mode the launcher's folder comes first, before any package of the
# same name, and in training it comes last.
FINDS = """\
{launcher}
import sys; sys.flags.isolated and sys.path.insert(0, {launcher!r})
"""


@dataclass(frozen=True)
class LocalEnvironment:
    """A local environment: the paths of its programs and modules."""

    path: str
    interpreter: Path
    layout: Layout
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NodePaths:
    """The paths at which a node's processes see their files. Without namespaces these are the real paths."""

    home: str = HOME
    temporary: str = TEMPORARY
    given: str = GIVEN
    project: str = PROJECT


def environment_for(name: str) -> LocalEnvironment | MissingEnvironment:
    """The environment that was chosen for a run; this checkout's interpreter if none was."""
    environment = find_environment(name if name.partition(LAYER)[0] in environment_rows() else DEFAULT_ENVIRONMENT)
    if isinstance(environment, MissingEnvironment):
        return environment
    variables = {**environment.variables, "TRAINYARD_ENVIRONMENT": environment.name.partition(LAYER)[0]}
    return LocalEnvironment(environment.path, environment.interpreter, environment.layout, variables)


def base_variables(environment: LocalEnvironment, seen: NodePaths, programs: str = "") -> Mapping[str, str]:
    """The variables of a node's processes, to which the job's are added. They contain few of the cloud's own.
    `programs`: a folder that precedes those of the environment in PATH."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {
        "LANG": "C.UTF-8",
        **passed,
        "PATH": os.pathsep.join(filter(None, (programs, environment.path))),
        "PYTHONUNBUFFERED": "1",
        "HOME": seen.home,
        "TMPDIR": seen.temporary,
        "USER": USER,
        **_SHARING,
        **environment.variables,
    }


_PROJECT = Path(__file__).resolve().parents[2]
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "ssl", layout.SETTINGS)
# Every node sees these folders.
_SYSTEM = tuple(Path("/", name) for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"))
# Variables that name files or folders of this machine, which the node must see.
_NAMED = ("LD_LIBRARY_PATH", "SSL_CERT_FILE", "TRAINYARD_PIN_LIBRARY")


def project_folder() -> str:
    return str(_PROJECT)


def shown_launcher() -> Shown:
    return str(_PROJECT / "launcher"), f"{PROJECT}/launcher"


def shown_programs(parts: Layout, variables: Mapping[str, str]) -> tuple[Shown, ...]:
    """The files and folders that an environment needs, each at its own path."""
    own = {prefix for program in base_interpreters() for prefix in layout.interpreter_layout(program).prefixes}
    named = [path for name in _NAMED for path in variables.get(name, "").split(os.pathsep) if os.path.isabs(path)]
    ways = [way for prefix in parts.prefixes for way in _environment_paths(prefix, own)]
    ways += [way for path in named for way in _trusted_paths(Path(path))]
    # Without those that every node sees anyway, or that would show a home or this checkout.
    return tuple(
        dict.fromkeys(
            (str(source), str(target))
            for source, target in ways
            if os.path.lexists(source) and not any(map(_must_stay_hidden, (source, target)))
        )
    )


def _environment_paths(prefix: Path, own: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    if prefix.is_relative_to(cache.environments_cache()):
        for part in _PARTS:
            # Links are resolved only in the cache's own path: the packages in it are not trusted.
            path = prefix / part
            real = cache.environments_cache().resolve() / path.relative_to(cache.environments_cache())
            yield real, path
            yield real, real
    elif prefix in own or _is_system(prefix):
        for part in _PARTS:
            yield from _trusted_paths(prefix / part)
    else:
        raise CannotStartError(f"{prefix} is neither an environment nor an interpreter of this machine: not shown")


def _trusted_paths(path: Path) -> Iterator[tuple[Path, Path]]:
    """A path as it is written, and with all links resolved."""
    yield path.parent.resolve() / path.name, Path(os.path.normpath(path))
    yield path.resolve(), path.resolve()


def _must_stay_hidden(path: Path) -> bool:
    too_much = any(each.is_relative_to(path) for each in (Path.home(), _PROJECT))
    return too_much or _is_system(path) or path.is_relative_to(_PROJECT / "launcher")


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in _SYSTEM)


def write_python(folder: Path, interpreter: Path, parts: Layout, launcher: str) -> None:
    """Makes the `python` of a node, with which it finds the launcher as in an image.

    An image has the launcher in its Python's site-packages, because `python -I -m launcher` ignores PYTHONPATH. Local
    environments are shared by all checkouts, so they cannot contain a launcher. Instead each node gets an empty virtual
    environment over the shared one. `parts`: the layout of the shared one. `launcher`: the package's folder, as the
    node sees it.
    """
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    for name in _NAMES:
        link = programs / name
        link.unlink(missing_ok=True)
        link.symlink_to(interpreter)
    (folder / SETTINGS).write_text(parts.settings, "utf-8")
    for site in parts.sites:
        own = folder / "lib" / site.parent.name / "site-packages"
        own.mkdir(parents=True, exist_ok=True)
        # This also reads the environment's own `.pth` files. Python finds a base environment by itself.
        below = "" if parts.is_base else f"import site; site.addsitedir({str(site)!r})\n"
        (own / "trainyard.pth").write_text(below + FINDS.format(launcher=launcher), "utf-8")
    # For the run's user: the cloud's umask may have closed it.
    for path in (folder, *folder.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() else 0o644)
