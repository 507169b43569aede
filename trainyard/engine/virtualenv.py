# SPDX-License-Identifier: Apache-2.0
"""Which Python a Pulumi.yaml, PulumiPlugin.yaml or PulumiPolicy.yaml asks for, and the environment it runs in."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLUGIN_DEFAULT = "venv"


class NoPythonError(Exception):
    """The Python that a project asks for does not exist. The message says what to do."""


@dataclass(frozen=True)
class Interpreter:
    """A Python, and the virtual environment it belongs to, if any."""

    python: str
    virtualenv: Path | None

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the changes that `activate` makes, so that programs find their environment's tools."""
        env = dict(base)
        if self.virtualenv:
            env["VIRTUAL_ENV"] = str(self.virtualenv)
            env["PATH"] = os.pathsep.join([str(self.virtualenv / "bin"), env.get("PATH", os.defpath)])
            env.pop("PYTHONHOME", None)
        return env


def wanted_virtualenv(root: Path, options: Mapping[str, object]) -> Path | None:
    """The folder named by the runtime option `virtualenv`, relative to the file that names it."""
    toolchain = options.get("toolchain", "pip")
    if toolchain != "pip":
        raise NoPythonError(
            f"{root}: the runtime option `toolchain: {toolchain}` needs the language host that comes with Pulumi.\n"
            "Install Pulumi itself, or name a virtual environment: `virtualenv: .venv`."
        )
    name = options.get("virtualenv")
    return (root / str(name)) if name else None


def interpreter(root: Path, options: Mapping[str, object], plugin: bool = False) -> Interpreter:
    """The Python for a program or plugin. As with Pulumi's own host, a plugin never runs with the Python on PATH."""
    folder = wanted_virtualenv(root, options) or (root / PLUGIN_DEFAULT if plugin else None)
    if folder is None:
        return Interpreter(ambient_python(root), None)
    folder = Path(os.path.normpath(folder))
    python = folder / "bin" / "python"
    if not python.is_file():
        what = "is not a virtual environment" if folder.is_dir() else "doesn't exist"
        raise NoPythonError(
            f"{root}: its runtime option `virtualenv` names {folder}, which {what}.\n"
            f"Make it: `python3 -m venv {folder}` and install the project's requirements into it, or `make setup`."
        )
    return Interpreter(str(python), folder)


def ambient_python(root: Path) -> str:
    named = os.environ.get("PULUMI_PYTHON_CMD")
    for name in [named] if named else ["python3", "python"]:
        python = shutil.which(name)
        if python:
            return python
    raise NoPythonError(
        f"{root}: no Python found ({named or 'python3'} is not on PATH).\n"
        "Install Python 3.11 or later, or name a virtual environment in the runtime options."
    )
