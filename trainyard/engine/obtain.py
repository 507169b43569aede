# SPDX-License-Identifier: Apache-2.0
"""Finds the Pulumi engine on PATH or in the cache. Otherwise downloads it from Pulumi, or builds it from source.

All clones share the cache. An engine appears there in one step, and one process at a time makes it. `environment` keeps
local stacks apart from the user's Pulumi login: they have a file backend and a passphrase of their own.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from launcher.escaping import terminal_line
from trainyard.engine.build import build_engine
from trainyard.engine.download import MirrorError, download_engine
from trainyard.engine.isolated import why_committed
from trainyard.engine.progress import Progress
from trainyard.engine.tools import LANGUAGE_HOST, write_tools, write_trampoline
from trainyard.engine.trusted import PlantedError, close_below, open_lock, own_folder, private_folder, require_own
from trainyard.engine.versions import ENGINE_VERSION, OLDEST_ENGINE, EngineError, Machine, at_least

_BELOW_ROOT = ("trainyard", "engine")
# People set these variables for their own stacks. For a local stack they would override our settings.
NOT_FOR_LOCAL_STACKS = (
    "PULUMI_CONFIG_PASSPHRASE",
    "PULUMI_ACCESS_TOKEN",
    "PULUMI_STACK",
    "PULUMI_IGNORE_AMBIENT_PLUGINS",
    "PULUMI_SELF_MANAGED_STATE_GZIP",
)


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
        with hold_engine_lock(folder, progress):
            if not is_whole(folder):
                _make_engine(folder, machine, env, progress)
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
    what = f"is {terminal_line(version)}, older than {OLDEST_ENGINE}" if version else "does not run"
    progress.say(f"{pulumi} {what}: looking for another Pulumi engine")
    return None


def _make_engine(folder: Path, machine: Machine, env: Mapping[str, str], progress: Progress) -> None:
    try:
        publish_engine(folder, lambda part: download_engine(part, machine, env, progress), env)
        progress.say(f"downloaded the Pulumi engine into {folder}")
        return
    except MirrorError:
        raise
    except EngineError as problem:
        progress.say(f"Pulumi's release cannot be downloaded ({terminal_line(str(problem).splitlines()[0])})")

    def fill(part: Path) -> None:
        build_engine(part, env, progress)
        write_trampoline(part / LANGUAGE_HOST)

    publish_engine(folder, fill, env)
    progress.say(f"built the Pulumi engine into {folder}; every clone uses it from now on")


def cache_root(env: Mapping[str, str]) -> Path:
    """The user's cache folder. It may be a link to another disk."""
    return Path(env.get("XDG_CACHE_HOME") or Path(env.get("HOME") or Path.home()) / ".cache")


def engine_cache(env: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/trainyard/engine`."""
    return cache_root(env).joinpath(*_BELOW_ROOT)


def cached_engine(env: Mapping[str, str], machine: Machine) -> Path:
    return engine_cache(env) / f"{ENGINE_VERSION}-{machine.os}-{machine.processor}"


def is_whole(folder: Path) -> bool:
    """Whether the folder has an engine. Raises PlantedError if another user could have put it there or changed it."""
    if not os.access(folder / "pulumi", os.X_OK):
        return False
    for place in (*reversed(folder.parents[: len(_BELOW_ROOT)]), folder, *sorted(folder.iterdir())):
        require_own(place)
    return True


def version_of(pulumi: Path, env: Mapping[str, str]) -> str:
    """What `pulumi version` prints. Empty if it cannot be run."""
    quiet = {**env, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        printed = subprocess.run(
            [str(pulumi), "version"], capture_output=True, text=True, timeout=30, env=quiet, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return printed.stdout.strip()


@contextlib.contextmanager
def hold_engine_lock(folder: Path, progress: Progress) -> Iterator[None]:
    """Holds the lock that a process needs to make `folder`. A second process waits, and says so. A crash releases the
    lock."""
    own_folder(folder.parents[len(_BELOW_ROOT)], *_BELOW_ROOT)
    with open_lock(folder.parent / f".{folder.name}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.say(f"another set-up is getting the Pulumi engine into {folder}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def publish_engine(folder: Path, fill: Callable[[Path], None], env: Mapping[str, str]) -> None:
    """Lets `fill` make the engine in a sibling folder, checks that it runs, and then renames that folder.

    Call it with the lock held. Other unfinished folders are then leftovers of killed processes, and are removed.
    """
    for leftover in folder.parent.glob(f".{folder.name}.part-*"):
        shutil.rmtree(leftover, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.part-", dir=folder.parent))
    try:
        fill(part)
        version = version_of(part / "pulumi", env)
        if not at_least(version, ENGINE_VERSION):
            raise EngineError(f"the new engine does not run: `pulumi version` printed {version!r}")
        for made in (part, *part.iterdir()):
            made.chmod(0o755)
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def local_stack_environment(home: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """All variables for `pulumi` on a local stack that is kept under `home` (usually `.trainyard`).

    PATH leads to an engine (which is made first if the machine has none) and to the plugins of local stacks.
    `base` is the environment to start from. The default is this process's own.
    """
    env = dict(os.environ if base is None else base)
    for name in ("pulumi", "bin"):
        if reason := why_committed(home / name):
            raise EngineError(reason)
    engine = engine_folder(env)
    tools = write_tools(home, engine, env)
    pulumi_home = private_folder((home / "pulumi").absolute())
    state = private_folder(pulumi_home / "state")
    for folder in (state, pulumi_home / "stacks"):
        close_below(folder)
    for name in NOT_FOR_LOCAL_STACKS:
        env.pop(name, None)
    return env | {
        "PATH": os.pathsep.join([str(tools), str(engine), env.get("PATH", os.defpath)]),
        "PULUMI_HOME": str(pulumi_home),
        "PULUMI_BACKEND_URL": state.as_uri(),
        "PULUMI_CONFIG_PASSPHRASE_FILE": str(passphrase_file(pulumi_home)),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def passphrase_file(pulumi_home: Path) -> Path:
    """The passphrase file of this checkout's local stacks, made on first use. If two processes make it at once, the
    first one counts."""
    path = pulumi_home / "passphrase"
    if path.exists():
        return path
    candidate = pulumi_home / f".passphrase-{os.getpid()}-{secrets.token_hex(4)}"
    candidate.touch(mode=0o600)
    candidate.write_text(secrets.token_urlsafe(32) + "\n")
    try:
        os.link(candidate, path)
    except FileExistsError:
        pass
    finally:
        candidate.unlink()
    return path
