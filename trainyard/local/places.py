# SPDX-License-Identifier: Apache-2.0
"""The one rule by which every command finds stack files and the local cloud, and the words that lead back to them.

The local cloud and the states of its stacks are in `.trainyard` of this checkout, or where TRAINYARD_HOME moves it
(`tools_home`), wherever a command is called from. A `.trainyard` of the current folder is never used unasked: in a
cloned repository its content would be somebody else's. Stack files are found from the current folder.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Any

import yaml

from schemas.load import NAMESPACE, stack_name
from schemas.name_suggestions import nearest_name, quoted_list

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = CHECKOUT / "stacks"
_FILES = "Pulumi.*.yaml"
# A message lists up to this many names of stacks.
_MOST_NAMED = 8
_READ_BYTES = 2_000_000


class ProjectFileError(Exception):
    """A project file cannot be read. The text is for its user."""


def project_stacks() -> Path:
    """The folder of the stack files: the `stackConfigDir` of a project `trainyard` here; else this folder or its
    `stacks`, if stack files are there; else the `stackConfigDir` of the nearest such project above; else trainyard's
    own examples.

    A repository may have other Pulumi projects: their projects and stack files have no keys of trainyard.
    """
    for folder in (Path(), *Path.cwd().parents):
        file = folder / "Pulumi.yaml"
        project = _read_project(file) if file.is_file() else {}
        # A project's name is the namespace of its keys.
        if f"{project.get('name')}:" == NAMESPACE:
            return folder / str(project.get("stackConfigDir") or "")
        if folder == Path() and (here := next(filter(_has_stacks, (folder, Path("stacks"))), None)):
            return here
    return EXAMPLES


def _has_stacks(folder: Path) -> bool:
    for file in filter(Path.is_file, folder.glob(_FILES)):
        with suppress(OSError), file.open("rb") as content:
            if NAMESPACE.encode() in content.read(_READ_BYTES):
                return True
    return False


def _read_project(file: Path) -> Mapping[str, Any]:
    try:
        project = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ProjectFileError(f"{file} cannot be read: {error}") from error
    return project if isinstance(project, dict) else {}


def why_no_stack(name: str, stacks: Path) -> str:
    """The message for a name without a file in this folder: where else the file is, or which name is nearest."""
    places = (folder for folder in (Path(), Path("stacks"), EXAMPLES) if (folder / f"Pulumi.{name}.yaml").is_file())
    there = sorted(map(stack_name, stacks.glob(_FILES)))
    if elsewhere := next(places, None):
        hint = f"its file is in {elsewhere}/: add {shlex.join(['--stacks', str(elsewhere)])}"
    elif close := nearest_name(name, there):
        hint = f"did you mean `{close}`?"
    elif there and len(there) <= _MOST_NAMED:
        hint = f"there are {quoted_list(there)}; for another folder, name the file, or add --stacks DIR"
    else:
        hint = "name its file, or its folder with --stacks DIR"
    return f"no stack `{name}` in {stacks}/: {hint}"


def stacks_words(stacks: Path) -> list[str]:
    """The option that names this folder, unless commands find it from the current folder."""
    return [] if stacks.resolve() == project_stacks().resolve() else ["--stacks", str(stacks)]


def own_command() -> str:
    """How the caller's shell finds `trainyard`: on the PATH, below this folder, or by its whole path."""
    own = Path(sys.prefix) / "bin" / "trainyard"
    if (there := which("trainyard")) and own.exists() and Path(there).samefile(own):
        return "trainyard"
    return shlex.quote(str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own))


def other_clouds(stack: str, home: Path) -> Iterator[Path]:
    """Folders like `.trainyard`, other than `home`, in which this stack is up: of clouds that run, of this checkout,
    of the current folder and those above it. They are only named, never used."""
    from components.platform.local import stacks_up
    from localcloud.control import running_homes

    above = (folder / ".trainyard" for folder in (Path.cwd(), *Path.cwd().parents))
    usual = (CHECKOUT / ".trainyard", *(cloud.parent for cloud in running_homes()), *above)
    for folder in dict.fromkeys(place.resolve() for place in usual):
        if folder != home.resolve() and stack in stacks_up(folder / "cloud"):
            yield folder


def hint_of_other_clouds(stack: str, home: Path) -> str:
    """A line that names the local clouds in which the stack is up, with what to set to use one. Empty if none."""
    lines = (
        f"\nIt is up on the local cloud in {folder / 'cloud'}. To use that one: "
        f"{shlex.join(['export', f'TRAINYARD_HOME={folder}'])}"
        for folder in other_clouds(stack, home)
    )
    return "".join(lines)


def cloud_home(home: Path | None) -> Path:
    """The folder of the local cloud: the one that `--home` names, else the usual one."""
    from localcloud.control import default_home

    return (home or default_home()).resolve()
