# SPDX-License-Identifier: Apache-2.0
"""Which folders a language host may run: only those of the project that its engine was started for.

The engine does not say which folders those are (only hosts that somebody else started get its `Handshake`, and even
that names none). So the host reads them from the engine's working directory, its command line and the project's files.
This is the second line of defence, behind trainyard/engine/callers.py (docs/decisions/0029).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECTS = ("Pulumi.yaml", "Pulumi.yml", "Pulumi.json")
MANIFESTS = (*PROJECTS, "PulumiPlugin.yaml", "PulumiPolicy.yaml")
# Where the engine installs plugins and policy packs for this account, below PULUMI_HOME.
INSTALLED = ("plugins", "policies")
# The engine also takes every option from a variable with this prefix: PULUMI_OPTION_POLICY_PACK.
OPTION = "PULUMI_OPTION_"
ROOT = 0


class OtherFolderError(Exception):
    """A folder, or a Python, that the project does not name. The message says what may be run."""


@dataclass(frozen=True)
class EngineCall:
    """How the engine was started: its working directory and its command line."""

    folder: Path
    words: tuple[str, ...]


def engine_call(process: int, env: Mapping[str, str]) -> EngineCall | None:
    """None where other processes cannot be read: only Linux has /proc."""
    proc = Path("/proc") / str(process)
    try:
        words = (proc / "cmdline").read_bytes().decode(errors="surrogateescape").split("\0")
        folder = (proc / "cwd").readlink()
    except OSError:
        return None
    options = [value for name, value in env.items() if name.startswith(OPTION)]
    return EngineCall(folder, (*words, *(word for value in options for word in (value, *value.split(",")))))


class Folders:
    """The folders of one project. Its files are read again for each request, because commands may change them."""

    def __init__(self, started_in: Path, engine: EngineCall | None, env: Mapping[str, str]) -> None:
        self._starts = [started_in]
        self._engine = engine
        home = Path(env.get("PULUMI_HOME") or Path.home() / ".pulumi")
        self._installed = [os.path.realpath(home / name) for name in INSTALLED]

    def add(self, folder: str) -> None:
        self._starts.append(Path(folder))

    def require(self, *folders: str) -> None:
        """Raises OtherFolderError unless each of these is a folder of the project."""
        known: set[tuple[int, int]] = set()
        for folder in filter(None, folders):
            known = known or {key for own in self._project_folders() if (key := _folder_identity(own))}
            if (
                _folder_identity(Path(folder)) not in known
                and not self._is_installed(folder)
                and not self._is_ours(folder)
            ):
                raise OtherFolderError(
                    f"{folder} does not belong to the project that the engine was started for. The host runs only the "
                    "project: the folder of its Pulumi.yaml, its `main`, plugins and packages that it names by path, "
                    "policy packs of the command line, and what is installed in PULUMI_HOME. Name the folder in one of "
                    "these; if you started the host yourself, start it in the project's folder."
                )

    def require_python(self, root: str, options: Mapping[str, object]) -> None:
        """Raises OtherFolderError unless the request asks for the virtual environment that a file in `root` names."""
        named = options.get("virtualenv")
        if not named:
            return
        in_files = [_runtime_options(manifest).get("virtualenv") for manifest in _manifests_in(Path(root))]
        if named not in in_files:
            files = ", ".join(MANIFESTS)
            raise OtherFolderError(f"{root}: none of its files ({files}) names the virtual environment {named}")

    def _is_installed(self, folder: str) -> bool:
        real = Path(os.path.realpath(folder))
        return any(real.is_relative_to(place) for place in self._installed)

    def _is_ours(self, folder: str) -> bool:
        """Used only where the engine's command line cannot be read: whether this account or root owns the folder."""
        if self._engine is not None:
            return False
        trusted = {ROOT, self._starts[0].stat().st_uid, *([os.geteuid()] if hasattr(os, "geteuid") else [])}
        return Path(folder).is_dir() and Path(folder).stat().st_uid in trusted

    def _project_folders(self) -> Iterator[Path]:
        """Every folder of the project, and, transitively, the folders that files in them name."""
        starts = [*self._starts]
        if self._engine:
            # The arguments and option values of its command line may be folders.
            texts = (text for word in self._engine.words for text in {word, word.partition("=")[2]} - {""})
            named = (self._engine.folder / text for text in texts)
            starts += [self._engine.folder, *filter(Path.is_dir, named)]
        waiting = [*starts, *(root for start in starts if (root := _nearest_project(start)))]
        seen: set[str] = set()
        while waiting:
            folder = waiting.pop()
            real = os.path.realpath(folder)
            if real not in seen:
                seen.add(real)
                yield folder
                waiting += _named_by(folder)


def _nearest_project(start: Path) -> Path | None:
    """The nearest folder from `start` upwards with a Pulumi.yaml, as the engine finds it."""
    real = Path(os.path.realpath(start))
    return next((folder for folder in (real, *real.parents) if next(_manifests_in(folder), None)), None)


def _manifests_in(folder: Path) -> Iterator[Path]:
    return (folder / name for name in MANIFESTS if (folder / name).is_file())


def _named_by(folder: Path) -> Iterator[Path]:
    """The program's folder, and the plugins and packages that files in `folder` name by path."""
    for manifest in _manifests_in(folder):
        content = _read_manifest(manifest)
        kinds = [kind for kind in _mapping_values(content.get("plugins")) if isinstance(kind, list)]
        plugins = [plugin for kind in kinds for plugin in kind if isinstance(plugin, dict)]
        packages = [
            package.get("source") if isinstance(package, dict) else package
            for package in _mapping_values(content.get("packages"))
        ]
        paths = [content.get("main"), *(plugin.get("path") for plugin in plugins), *packages]
        for path in (folder / path for path in paths if isinstance(path, str)):
            # `main`, or a plugin, may be the file itself.
            yield path if path.is_dir() else path.parent


def _mapping_values(mapping: Any) -> Iterable[Any]:
    return mapping.values() if isinstance(mapping, dict) else ()


def _runtime_options(manifest: Path) -> Mapping[str, object]:
    runtime = _read_manifest(manifest).get("runtime")
    options = runtime.get("options") if isinstance(runtime, dict) else None
    return options if isinstance(options, dict) else {}


def _read_manifest(manifest: Path) -> Mapping[str, Any]:
    # Imported late: the engine waits while a host starts, and the host needs YAML only once it runs something.
    import yaml

    try:
        content = yaml.load(manifest.read_bytes(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (OSError, yaml.YAMLError):
        return {}
    return content if isinstance(content, dict) else {}


def _folder_identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode, which stay the same through links and on file systems that ignore case."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
