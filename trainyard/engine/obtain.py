# SPDX-License-Identifier: Apache-2.0
"""Finds the Pulumi engine on PATH or in the cache. Otherwise downloads it from Pulumi, or builds it from source."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from launcher.escaping import terminal
from trainyard.engine.build import build
from trainyard.engine.cache import cached_engine, is_whole, locked, publish, version_of
from trainyard.engine.download import MirrorError, download
from trainyard.engine.progress import Progress
from trainyard.engine.tools import LANGUAGE_HOST, write_trampoline
from trainyard.engine.trusted import PlantedError
from trainyard.engine.versions import OLDEST_ENGINE, EngineError, Machine, at_least


def engine_folder(env: Mapping[str, str] | None = None, progress: Progress | None = None) -> Path:
    """The folder of the `pulumi` to use. The first call on a machine may take minutes. Raises EngineError."""
    env = os.environ if env is None else env
    progress = progress or Progress()
    on_path = engine_on_path(env, progress)
    if on_path:
        return on_path
    machine = Machine.here()
    folder = cached_engine(env, machine)
    try:
        if is_whole(folder):
            return folder
        with locked(folder, progress):
            if not is_whole(folder):
                _make(folder, machine, env, progress)
    except PlantedError as problem:
        raise EngineError(f"{problem}\nOr name another folder in XDG_CACHE_HOME.") from problem
    except OSError as problem:
        raise EngineError(
            f"the Pulumi engine cannot be put into {folder}: {problem}\n"
            "Make room there, or name another folder in XDG_CACHE_HOME, or install Pulumi so that it is on PATH."
        ) from problem
    return folder


def engine_on_path(env: Mapping[str, str], progress: Progress) -> Path | None:
    """The folder of the first `pulumi` on PATH, if it runs and is new enough."""
    pulumi = shutil.which("pulumi", path=env.get("PATH"))
    if not pulumi:
        return None
    version = version_of(Path(pulumi), env)
    if at_least(version, OLDEST_ENGINE):
        return Path(pulumi).absolute().parent
    what = f"is {terminal(version)}, older than {OLDEST_ENGINE}" if version else "does not run"
    progress.say(f"{pulumi} {what}: looking for another Pulumi engine")
    return None


def _make(folder: Path, machine: Machine, env: Mapping[str, str], progress: Progress) -> None:
    try:
        publish(folder, lambda part: download(part, machine, env, progress), env)
        progress.say(f"downloaded the Pulumi engine into {folder}")
        return
    except MirrorError:
        raise
    except EngineError as problem:
        progress.say(f"Pulumi's release cannot be downloaded ({terminal(str(problem).splitlines()[0])})")

    def fill(part: Path) -> None:
        build(part, env, progress)
        write_trampoline(part / LANGUAGE_HOST)

    publish(folder, fill, env)
    progress.say(f"built the Pulumi engine into {folder}; every clone uses it from now on")
