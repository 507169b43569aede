# SPDX-License-Identifier: Apache-2.0
"""Writes the plugins of local stacks as small scripts in `.trainyard/bin`, if the machine's Pulumi lacks them."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from trainyard.engine.isolated import isolated_python
from trainyard.engine.versions import EngineError

CHECKOUT = Path(__file__).absolute().parents[2]
LANGUAGE_HOST = "pulumi-language-python"
OWN_LANGUAGE_HOST = "trainyard-language-python"


@dataclass(frozen=True)
class StandIn:
    """A plugin of the local cloud that takes the real one's place for local stacks."""

    provider: str
    # The SDK that a program imports. The engine asks for the plugin by its version.
    package: str
    module: str
    # With the value `real` in this variable, Pulumi's own plugin is used.
    variable: str

    @property
    def program(self) -> str:
        return f"pulumi-resource-{self.provider}"


def stand_ins() -> tuple[StandIn, ...]:
    """One for each platform whose local cloud has a plugin. Its folder has the name of the provider."""
    folders = sorted(file.parents[1] for file in CHECKOUT.glob("localcloud/*/plugin/__main__.py"))
    return tuple(
        StandIn(name, f"pulumi_{name}", f"localcloud.{name}.plugin", f"TRAINYARD_{name.upper()}_PLUGIN")
        for name in (folder.name for folder in folders)
    )


# Pulumi warns about a language host on PATH unless it is the one in the folder of `pulumi`. So an engine that we built
# has this script in its folder. Each checkout links to it from `.trainyard/bin`, and it runs the host of the checkout
# through whose link it was called.
_RUNS_OURS = f'host="$(dirname "$0")/{OWN_LANGUAGE_HOST}"'
TRAMPOLINE = f"""#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
{_RUNS_OURS}
[ -x "$host" ] && exec "$host" "$@"
echo "this engine has no Python: put the folder \\`python -m trainyard.engine tools\\` prints first on PATH" >&2
exit 1
"""
# The script sets the path itself: a PYTHONPATH would be inherited by the programs of other projects.
START = (
    "import runpy, sys; sys.path.insert(0, {checkout!r});"
    " runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)
SCRIPT = """#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
exec {command} "$@"
"""


def tools_home(env: Mapping[str, str]) -> Path:
    """`.trainyard` of this checkout, or where TRAINYARD_HOME moves it."""
    return Path(env.get("TRAINYARD_HOME") or CHECKOUT / ".trainyard").absolute()


def write_tools(home: Path, engine: Path, env: Mapping[str, str]) -> Path:
    """Updates `home/bin` for this engine, and the plugins of local stacks; returns that folder."""
    folder = home.absolute() / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    _write_language_host(folder, engine, env)
    for stand_in in stand_ins():
        # An earlier release put plugins on PATH, and the engine warns about those at every step.
        (folder / stand_in.program).unlink(missing_ok=True)
        plugin, script = plugin_path(home, stand_in), script_for(stand_in.module)
        if plugin is None:
            continue
        choice = env.get(stand_in.variable, "")
        if choice not in ("", "real"):
            raise EngineError(
                f"{stand_in.variable} is {choice!a}: write `real` for Pulumi's own plugin, or leave it out"
            )
        if not choice:
            plugin.parent.mkdir(parents=True, exist_ok=True)
            write_script(plugin, script)
        elif plugin.is_file() and plugin.read_bytes() == script.encode():
            plugin.unlink()
            plugin.parent.rmdir()
    return folder


def plugin_path(home: Path, stand_in: StandIn) -> Path | None:
    """The path under which the engine finds the plugin as an installed one, of the version that programs ask for.

    None if the SDK is not installed: then no program can ask for the plugin.
    """
    try:
        wanted = version(stand_in.package)
    except PackageNotFoundError:
        return None
    return home.absolute() / "pulumi" / "plugins" / f"resource-{stand_in.provider}-v{wanted}" / stand_in.program


def _write_language_host(folder: Path, engine: Path, env: Mapping[str, str]) -> None:
    beside = engine / LANGUAGE_HOST
    bundled = beside.is_file() and not is_trampoline(beside)
    others = [
        place for place in env.get("PATH", os.defpath).split(os.pathsep) if place not in (str(folder), str(engine))
    ]
    other = shutil.which(LANGUAGE_HOST, path=os.pathsep.join(others))
    if bundled or (other is not None and not is_trampoline(Path(other)) and not is_own_language_host(Path(other))):
        for name in (LANGUAGE_HOST, OWN_LANGUAGE_HOST):
            (folder / name).unlink(missing_ok=True)
        return
    write_script(folder / OWN_LANGUAGE_HOST, script_for("trainyard.engine.language_host"))
    replace_link(folder / LANGUAGE_HOST, beside if beside.is_file() else folder / OWN_LANGUAGE_HOST)


def is_own_language_host(path: Path) -> bool:
    """Whether `path` was written by `write_tools` of this or another checkout."""
    return path.resolve().name == OWN_LANGUAGE_HOST


def is_trampoline(path: Path) -> bool:
    """Recognized by the line that all releases have in common: they share the cache, and other lines may differ."""
    with path.open("rb") as content:
        return _RUNS_OURS.encode() in content.read(2 * len(TRAMPOLINE))


def script_for(module: str) -> str:
    """A script that runs `module` of this checkout with the Python that runs now."""
    start = START.format(checkout=str(CHECKOUT), module=module)
    python = isolated_python("-u", "-c", start, packages_of_user=True)
    return SCRIPT.format(command=shlex.join(python))


def write_trampoline(path: Path) -> None:
    write_script(path, TRAMPOLINE)


def write_script(path: Path, text: str) -> None:
    """Writes the script in one step: another command may be starting it at this moment."""
    if path.is_file() and not path.is_symlink() and path.read_text() == text and os.access(path, os.X_OK):
        return
    handle, part = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as target:
            target.write(text)
    except OSError as problem:
        os.unlink(part)
        # The system's error for a full disk does not name the file.
        problem.filename = str(path)
        raise
    os.chmod(part, 0o755)
    os.replace(part, path)


def replace_link(path: Path, target: Path) -> None:
    if path.is_symlink() and path.readlink() == target:
        return
    part = path.parent / f".{path.name}-{os.getpid()}"
    part.unlink(missing_ok=True)
    part.symlink_to(target)
    os.replace(part, path)
