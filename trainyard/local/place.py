# SPDX-License-Identifier: Apache-2.0
"""A stack on the local cloud: its file, and the environment in which Pulumi sees only this cloud."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import yaml

from catalog.platforms import platform_in
from components.plan.model import Plan
from components.platform.base import answering, platform
from components.platform.calls import GO_ON, Tell
from components.platform.local import PROJECT_NAME, LocalFile, LocalPlatform, LocalStackError, State, states
from localcloud import control
from localcloud.code_age import why_older
from provider.runs.starting_again import RETRY_FAILED
from schemas.source import read
from trainyard.engine.local import environment
from trainyard.engine.tools import tools_home
from trainyard.engine.trusted import open_lock, private_folder
from trainyard.local import cloud_use
from trainyard.local.cloud_use import CloudUse, StackClaim
from trainyard.local.engine_events import EngineError, errors_in
from trainyard.local.file import holds_secrets, localize, waited_for_again
from trainyard.local.lost import forget_lost_stacks

PROJECT = Path(__file__).resolve().parents[2]
SALT = "encryptionsalt"
# Of a file whose secrets a service encrypts.
_OTHER_KEYS = ("secretsprovider", "encryptedkey")
PROJECT_FILE = f"name: {PROJECT_NAME}\nruntime: python\n"
# The engine makes files of states for everybody unless it is told so.
_OWN = 0o077
# Pulumi's own words for it: nothing to ask, nothing to draw that a log could not hold.
QUIET = ("--non-interactive", "--skip-preview", "--yes")
JUDGED = ("--policy-pack", str(PROJECT / "policies"))


class Place:
    """All that local commands do with one stack."""

    def __init__(
        self,
        stack: str,
        stacks: Path,
        tell: Tell,
        home: Path | None = None,
        output: IO[str] | None = None,
        isolation: str = "",
    ) -> None:
        """`home` keeps what local stacks make; `output` is where Pulumi's own words go, by default to the terminal;
        `isolation` is what a cloud is started with."""
        self.stack = stack
        self._tell = tell
        self.isolation = isolation
        self._output = output
        self._use: CloudUse | None = None
        self._claim: StackClaim | None = None
        self.file = stacks / f"Pulumi.{stack}.yaml"
        self.home = (home or default_home()).resolve()
        # A stack that is up can be taken down without its file: its copy is enough.
        if not self.file.is_file() and stack not in self.stacks():
            raise LocalStackError(self._no_file())
        # Otherwise gRPC writes to stderr whenever the other side closes a connection.
        self.env = environment(self.home) | {"TRAINYARD_STACKS": str(stacks), "GRPC_VERBOSITY": "NONE"}
        # A run costs nothing here: what an earlier `up` saw fail starts again.
        self.env[RETRY_FAILED] = "1"
        # Pulumi writes the salt of a new stack into the file beside the project it stands in: that is this folder.
        private_folder(self.local_file().parent)
        _write(self.local_file().with_name("Pulumi.yaml"), PROJECT_FILE)

    def _no_file(self) -> str:
        stacks = self.file.parent
        there = ", ".join(sorted(file.stem.removeprefix("Pulumi.") for file in stacks.glob("Pulumi.*.yaml")))
        return f"there is no {self.file}; the stacks of {stacks} are: {there or 'none'}"

    def must_have_file(self) -> None:
        if not self.file.is_file():
            raise LocalStackError(f"{self._no_file()}\nIt is still up. To take it down: {self.command('down')}")

    def command(self, word: str, stack: str = "", *more: str) -> str:
        """The command line for `trainyard WORD` on this stack, or on another of the same folder."""
        folder = self.file.parent
        where = () if folder == PROJECT / "stacks" else ("--stacks", str(folder))
        return shlex.join(["trainyard", *word.split(), stack or self.stack, "--local", *more, *where])

    def start_cloud(self) -> control.Cloud:
        self._use = self._use or CloudUse(self.home, self._tell)
        cloud = control.start(self.home / "cloud", isolation=self.isolation)
        if why := why_older(cloud.home):
            self._tell(why)
        self.env |= cloud.env_of_caller()
        with self._alone():
            forget_lost_stacks(self.home, cloud, self.stacks(), self._forget_resources, self._tell)
        cloud_use.remove_dead_locks(self._locks, self.stack)
        self._mend()
        return cloud

    @contextmanager
    def leave_cloud(self) -> Iterator[bool]:
        """Whether nobody needs the cloud any more: no stack is up, and no other command uses it, nor begins to before
        the end of the block."""
        if self._use is None:
            raise LocalStackError("this command has not started the local cloud")
        with self._use.end() as alone:
            yield alone and not self.stacks_up()

    def pulumi(self, *arguments: str, show: Callable[[str], None] | None = None) -> int:
        """Its exit code. `show` gets each line of its output."""
        # The stack's own file is never written to: its copy carries the salt of the local passphrase.
        where = ("--stack", self.stack, "--config-file", str(self.local_file()))
        words = ["pulumi", *arguments, *where]
        error = subprocess.STDOUT if self._output else None
        if show is not None:
            with subprocess.Popen(
                words,
                env=self.env,
                cwd=PROJECT,
                stdout=subprocess.PIPE,
                text=True,
                errors="replace",
                umask=_OWN,
            ) as engine:
                for line in engine.stdout or ():
                    show(line.rstrip("\n"))
            return engine.returncode
        done = subprocess.run(words, env=self.env, cwd=PROJECT, stdout=self._output, stderr=error, umask=_OWN)
        return done.returncode

    def up(self, *arguments: str) -> tuple[int, list[EngineError]]:
        """`pulumi up`: its exit code, and the errors that it showed."""
        log = self.home / "pulumi" / f"events-{self.stack}.json"
        log.unlink(missing_ok=True)
        # The engine knows the option `--event-log`, which Pulumi's own Automation API uses, only with this variable.
        self.env["PULUMI_DEBUG_COMMANDS"] = "true"
        # A replaced run ends before its successor starts. If the engine stopped because another run failed in between,
        # the first one would be gone and not started again.
        self.env[GO_ON] = "true"
        try:
            code = self.pulumi("up", *QUIET, "--event-log", str(log), *arguments)
            return code, errors_in(log)
        finally:
            log.unlink(missing_ok=True)

    def local_file(self) -> Path:
        return self.home / "pulumi" / "stacks" / self.file.name

    @property
    def platform_name(self) -> str:
        """The platform of this stack. One that is up is asked by its copy: the team's file may be gone, or changed."""
        return platform_in((_data(self.local_file()) or {}).get("config") or read(self.file).data["config"])

    @property
    def platform(self) -> LocalPlatform:
        return platform(self.platform_name).local

    def select(self, plan: Plan, cloud: control.Cloud) -> LocalFile:
        """The stack in the local backend, made when it is not there; gives its file as the local cloud can take it."""
        copy, written = self.local_file(), read(self.file).data
        with self._alone():
            stand_in = partial(platform(plan.platform).local.stand_in, plan=plan, cloud=cloud, tell=self._tell)
            opens = SALT in written and self._opens(written[SALT])
            local = localize(written["config"], plan, stand_in, self.file.parent, keeps_secrets=opens)
        local.remarks += waited_for_again((_data(copy) or {}).get("config") or {}, local.config)
        salt = {SALT: text} if (text := written[SALT] if opens else self._salt()) else {}
        # Its own order of keys; texts as long as they are.
        _write(copy, yaml.safe_dump({"config": local.config, **salt}, sort_keys=False, width=10_000))
        if self.stack not in self.stacks():
            self._init()
        if local.secrets:
            pairs = (word for path, value in local.secrets.items() for word in ("--secret", f"{path}={value}"))
            self._engine("config", "set-all", "--path", "--stack", self.stack, *pairs)
        return local

    def has_foreign_secrets(self) -> bool:
        """Whether another key than that of local stacks encrypted secrets of the stack's file, or is to do so."""
        written = read(self.file).data
        if SALT in written:
            return not self._opens(written[SALT])
        # So that a secret can be set: Pulumi asks for the stack.
        if self.stack not in self.stacks():
            self._init()
        return any(key in written for key in _OTHER_KEYS) or holds_secrets(written["config"])

    def _opens(self, salt: str) -> bool:
        """Whether the key of local stacks is the one whose salt this is. The engine looks only when it encrypts."""
        if self.stack not in self.stacks():
            self._init()
        with TemporaryDirectory(dir=self.home / "pulumi") as folder:
            probe = Path(folder, "probe.yaml")
            probe.write_text(yaml.safe_dump({SALT: salt}), "utf-8")
            words = ["pulumi", "config", "set", "--secret", "probe", "-", "--non-interactive", "--stack", self.stack]
            words += ["--config-file", str(probe), "--cwd", str(self.local_file().parent)]
            return subprocess.run(words, env=self.env, capture_output=True, umask=_OWN).returncode == 0

    def _init(self) -> None:
        try:
            self.state("init", self.stack, "--no-select")
        except LocalStackError:
            # Another command may have just made the stack. The engine's lock decides which of them goes on.
            if self.stack not in self.stacks():
                raise

    def forget(self) -> None:
        """Forgets a stack that has no resources any more."""
        self.state("rm", self.stack, "--yes", "--preserve-config")
        self.local_file().unlink(missing_ok=True)

    def _forget_resources(self, stack: str) -> None:
        self.state("rm", stack, "--yes", "--force", "--preserve-config")
        self.local_file().with_name(f"Pulumi.{stack}.yaml").unlink(missing_ok=True)

    def stacks(self) -> list[str]:
        """As the file backend keeps them. `pulumi stack ls` fails when one of them goes while it looks."""
        return sorted(file.stem for file in self._states().glob("*.json"))

    def stacks_up(self) -> list[str]:
        """Those that made something which is still there. One that was only ever previewed made nothing."""
        return [one.stack for one in states(self._states().parent) if one.project == PROJECT_NAME and any(one.made())]

    def _states(self) -> Path:
        return self.home / "pulumi" / "state" / ".pulumi" / "stacks" / PROJECT_NAME

    def outputs(self, stack: str = "") -> dict[str, Any]:
        outputs: dict[str, Any] = json.loads(self.state("output", "--json", "--stack", stack or self.stack))
        return outputs

    def states(self) -> tuple[State, list[State]]:
        """This stack's state, and those of all stacks that share its backend."""
        every = states(self._states().parent)
        here = (PROJECT_NAME, self.stack)
        own = next((one for one in every if (one.project, one.stack) == here), State(*here, ()))
        return own, every

    def is_up(self, stack: str) -> bool:
        """A stack that was taken down may still have protected resources, and outputs that no longer work."""
        _, every = self.states()
        return any(not row.get("protect") for one in every if one.stack == stack for row in one.made())

    def remove_stand_ins(self, cloud: control.Cloud, with_data: bool) -> None:
        """Removes what was made for stacks of any platform. Meant for a cloud without stacks."""
        with self._alone():
            for name in answering("local"):
                platform(name).local.remove_stand_ins(cloud, self._tell, with_data)

    def state(self, *arguments: str) -> str:
        return self._engine("stack", *arguments)

    def _engine(self, *arguments: str) -> str:
        words = ["pulumi", *arguments, "--cwd", str(self.local_file().parent), "--non-interactive"]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, umask=_OWN)
        if done.returncode:
            raise LocalStackError(f"the local state: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def claim(self) -> None:
        """Fail if another command works on the stack. The engine's own message would not say what to do.

        The engine's lock appears late, so each of our commands holds one of its own until it ends.
        """
        if self._claim is None:
            self._claim = StackClaim(self.home / "pulumi" / f"claim-{self.stack}.lock", self.stack)
        cloud_use.refuse_if_locked(self._locks, self.stack)
        # An engine that was killed while it wrote a state leaves a part of it.
        for part in self._states().glob(f"{escape(self.stack)}.json*.tmp"):
            part.unlink(missing_ok=True)

    def _mend(self) -> None:
        """On a full disk, or when it is killed, the engine may write half a state. Go back to the copy before it;
        `up` adopts the rest."""
        state = self._states() / f"{self.stack}.json"
        # The backend notes a file's type beside it. It reads a file without such a note, and none with half of one.
        note = state.with_name(f"{state.name}.attrs")
        if note.exists() and not _is_whole(note) and not cloud_use.is_locked(self._locks, self.stack):
            note.unlink()
        if not state.exists() or _is_whole(state) or cloud_use.is_locked(self._locks, self.stack):
            return
        before = state.with_name(f"{state.name}.bak")
        if not before.exists() or not _is_whole(before):
            raise LocalStackError(
                f"{state} is cut off, as by a full disk, and there is no earlier copy.\n"
                f"To start over: trainyard cloud reset, then remove {self.home / 'pulumi'}"
            )
        _write(state, before.read_text("utf-8"))
        self._tell(f"{state} was cut off, as by a full disk: the copy before it is used instead.")

    @property
    def _locks(self) -> Path:
        return self.home / "pulumi" / "state" / ".pulumi" / "locks"

    def _salt(self) -> str:
        return str((_data(self.local_file()) or {}).get(SALT, ""))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold a lock, so that two stacks that come up at once do not make the same stand-in twice."""
        with open_lock(self.home / "stand-ins.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def default_home() -> Path:
    return tools_home(os.environ)


def _is_whole(file: Path) -> bool:
    try:
        return isinstance(json.loads(file.read_text("utf-8")), dict)
    except ValueError:
        return False


def _data(file: Path) -> Any:
    return yaml.safe_load(file.read_text("utf-8")) if file.exists() else None


def _write(file: Path, text: str) -> None:
    """Replace the file at once: another command may be reading it."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.touch(mode=0o600)
        draft.write_text(text, "utf-8")
    except OSError as problem:
        # Of a full disk the system names no file.
        problem.filename = str(file)
        raise
    draft.replace(file)
