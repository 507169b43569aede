# SPDX-License-Identifier: Apache-2.0
"""A stack on the local cloud: its file, its state, and an environment in which Pulumi reaches only this cloud."""

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

from catalog.platforms import platform_in, platforms_with, require_capability
from components.plan.model import Plan
from components.platform.calls import GO_ON, Tell
from components.platform.local import PROJECT_NAME, LocalFile, LocalPlatform, LocalStackError, State, states_in
from localcloud import control
from localcloud.code_age import why_cloud_is_older
from provider.runs.starting import RETRY_FAILED
from schemas.source import read_source
from trainyard.engine.obtain import local_stack_environment
from trainyard.engine.tools import tools_home
from trainyard.engine.trusted import open_lock, private_folder
from trainyard.local import cloud_use
from trainyard.local.cloud_use import CloudUse, StackClaim, forget_lost_stacks, replace_file
from trainyard.local.engine_events import EngineDiagnostic, errors_in
from trainyard.local.localize import holds_secrets, localize_config, waited_for_again
from trainyard.local.places import hint_of_other_clouds, own_command, stacks_words, why_no_stack

PROJECT = Path(__file__).resolve().parents[2]
SALT = "encryptionsalt"
# Keys of a stack file whose secrets are encrypted by a service.
_OTHER_KEYS = ("secretsprovider", "encryptedkey")
PROJECT_FILE = f"name: {PROJECT_NAME}\nruntime: python\n"
# The engine's umask: otherwise every account could read the files of states.
_OWN = 0o077
# Options with which Pulumi asks nothing and writes plain lines.
QUIET = ("--non-interactive", "--skip-preview", "--yes")
JUDGED = ("--policy-pack", str(PROJECT / "policies"))


class LocalStack:
    """The operations that commands need on one stack of the local cloud."""

    def __init__(
        self,
        stack: str,
        stacks: Path,
        tell: Tell,
        home: Path | None = None,
        output: IO[str] | None = None,
        isolation: str = "",
    ) -> None:
        """`home`: the folder of the cloud and of local states. `output`: where Pulumi's output goes, by default the
        terminal. `isolation`: the option with which the cloud is started."""
        self.stack = stack
        self._tell = tell
        self.isolation = isolation
        self._output = output
        self._use: CloudUse | None = None
        self._claim: StackClaim | None = None
        self.file = stacks / f"Pulumi.{stack}.yaml"
        self.home = (home or local_stacks_home()).resolve()
        # A stack that is up can be taken down without its file: the copy is enough.
        if not self.file.is_file() and stack not in self.stacks():
            reason = why_no_stack(stack, stacks)
            raise LocalStackError(f"{reason}{hint_of_other_clouds(stack, self.home)}")
        # Otherwise gRPC writes to stderr whenever the peer closes a connection.
        self.env = local_stack_environment(self.home) | {"TRAINYARD_STACKS": str(stacks), "GRPC_VERBOSITY": "NONE"}
        # A run costs nothing here, so `up` retries runs that failed in an earlier `up`.
        self.env[RETRY_FAILED] = "1"
        # Pulumi writes the salt of a new stack into a stack file in the project's folder, which is this one.
        private_folder(self.local_file().parent)
        replace_file(self.local_file().with_name("Pulumi.yaml"), PROJECT_FILE)

    def must_have_file(self) -> None:
        if not self.file.is_file():
            reason = why_no_stack(self.stack, self.file.parent)
            raise LocalStackError(f"{reason}\nIt is still up. To take it down: {self.command('down')}")

    def command(self, word: str, stack: str = "", *more: str) -> str:
        """The command line for `trainyard WORD` on this stack, or on another of the same folder."""
        words = [*word.split(), stack or self.stack, "--local", *more, *stacks_words(self.file.parent)]
        return f"{own_command()} {shlex.join(words)}"

    def start_cloud(self) -> control.Cloud:
        self._use = self._use or CloudUse(self.home, self._tell)
        cloud = control.start_cloud(self.home / "cloud", isolation=self.isolation)
        if why := why_cloud_is_older(cloud.home):
            self._tell(why)
        self.env |= cloud.env_of_caller()
        with self._stand_in_lock():
            forget_lost_stacks(self.home, cloud, self.stacks(), self._forget_resources, self._tell)
        cloud_use.remove_dead_locks(self._locks, self.stack)
        cloud_use.restore_truncated_state(self._states() / f"{self.stack}.json", self._locks, self._tell)
        return cloud

    @contextmanager
    def leave_cloud(self) -> Iterator[bool]:
        """Whether the cloud may be stopped: no stack is up, and no other command uses it. None can start before the end
        of the block."""
        if self._use is None:
            raise LocalStackError("this command has not started the local cloud")
        with self._use.end() as alone:
            yield alone and not self.stacks_up()

    def pulumi(self, *arguments: str, show: Callable[[str], None] | None = None) -> int:
        """Runs `pulumi` and returns its exit code. `show` gets each line of its output."""
        # Pulumi uses the copy, which has the salt of the local passphrase. The team's file is never changed.
        where = ("--stack", self.stack, "--config-file", str(self.local_file()))
        words = ["pulumi", *arguments, *where]
        error = subprocess.STDOUT if self._output else None
        if show is not None:
            with subprocess.Popen(
                words, env=self.env, cwd=PROJECT, stdout=subprocess.PIPE, text=True, errors="replace", umask=_OWN
            ) as engine:
                for line in engine.stdout or ():
                    show(line.rstrip("\n"))
            return engine.returncode
        done = subprocess.run(words, env=self.env, cwd=PROJECT, stdout=self._output, stderr=error, umask=_OWN)
        return done.returncode

    def up(self, *arguments: str) -> tuple[int, list[EngineDiagnostic]]:
        """Runs `pulumi up`. Returns its exit code, and the errors that it showed."""
        log = self.home / "pulumi" / f"events-{self.stack}.json"
        log.unlink(missing_ok=True)
        # The engine accepts `--event-log`, an option for Pulumi's Automation API, only with this variable.
        self.env["PULUMI_DEBUG_COMMANDS"] = "true"
        # A replacement first ends the old run, then starts the new one. If the engine stopped in between because
        # another run failed, the new one would never start.
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
        """The platform of this stack. For a stack that is up the copy decides: the team's file may have changed."""
        return platform_in((_load_yaml(self.local_file()) or {}).get("config") or read_source(self.file).data["config"])

    @property
    def platform(self) -> LocalPlatform:
        return require_capability(self.platform_name, LocalPlatform)

    def select(self, plan: Plan, cloud: control.Cloud) -> LocalFile:
        """Makes the stack in the local backend if needed. Returns its file as the local cloud can use it."""
        copy, written = self.local_file(), read_source(self.file).data
        with self._stand_in_lock():
            stand_in = partial(
                require_capability(plan.platform, LocalPlatform).stand_in, plan=plan, cloud=cloud, tell=self._tell
            )
            opens = SALT in written and self._opens(written[SALT])
            local = localize_config(written["config"], plan, stand_in, self.file.parent, keeps_secrets=opens)
        local.remarks += waited_for_again((_load_yaml(copy) or {}).get("config") or {}, local.config)
        salt = {SALT: text} if (text := written[SALT] if opens else self._salt()) else {}
        # Keys keep their order, and long texts are not folded.
        replace_file(copy, yaml.safe_dump({"config": local.config, **salt}, sort_keys=False, width=10_000))
        if self.stack not in self.stacks():
            self._init()
        if local.secrets:
            pairs = (word for path, value in local.secrets.items() for word in ("--secret", f"{path}={value}"))
            self._engine("config", "set-all", "--path", "--stack", self.stack, *pairs)
        return local

    def has_foreign_secrets(self) -> bool:
        """Whether the stack file's secrets are, or will be, encrypted with another key than that of local stacks."""
        written = read_source(self.file).data
        if SALT in written:
            return not self._opens(written[SALT])
        # Pulumi sets secrets only on a stack that exists.
        if self.stack not in self.stacks():
            self._init()
        return any(key in written for key in _OTHER_KEYS) or holds_secrets(written["config"])

    def _opens(self, salt: str) -> bool:
        """Whether the key of local stacks fits this salt. The engine compares them only when it encrypts something."""
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
            # Another command may have just made the stack. Then the engine's lock decides which of the two continues.
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
        """The stacks in the file backend. `pulumi stack ls` would fail if a stack were removed at the same time."""
        return sorted(file.stem for file in self._states().glob("*.json"))

    def stacks_up(self) -> list[str]:
        """The stacks that have resources. A stack that was only previewed has none."""
        return [
            state.stack
            for state in states_in(self._states().parent)
            if state.project == PROJECT_NAME and any(state.made())
        ]

    def _states(self) -> Path:
        return self.home / "pulumi" / "state" / ".pulumi" / "stacks" / PROJECT_NAME

    def outputs(self, stack: str = "") -> dict[str, Any]:
        outputs: dict[str, Any] = json.loads(self.state("output", "--json", "--stack", stack or self.stack))
        return outputs

    def states(self) -> tuple[State, list[State]]:
        """This stack's state, and those of all stacks that share its backend."""
        every = states_in(self._states().parent)
        here = (PROJECT_NAME, self.stack)
        own = next((state for state in every if (state.project, state.stack) == here), State(*here, ()))
        return own, every

    def is_up(self, stack: str) -> bool:
        """Whether the stack has resources that are not protected. After `down` it may still have protected ones, and
        outputs that no longer work."""
        _, every = self.states()
        return any(not row.get("protect") for state in every if state.stack == stack for row in state.made())

    def remove_stand_ins(self, cloud: control.Cloud, with_data: bool) -> None:
        """Removes the stand-ins for stacks of all platforms. Call it when the cloud has no stacks."""
        with self._stand_in_lock():
            for name in platforms_with(LocalPlatform):
                require_capability(name, LocalPlatform).remove_stand_ins(cloud, self._tell, with_data)

    def state(self, *arguments: str) -> str:
        return self._engine("stack", *arguments)

    def _engine(self, *arguments: str) -> str:
        words = ["pulumi", *arguments, "--cwd", str(self.local_file().parent), "--non-interactive"]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, umask=_OWN)
        if done.returncode:
            raise LocalStackError(f"the local state: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def claim(self) -> None:
        """Raises LocalStackError if another command works on the stack: the engine's own message has no remedy.

        The engine takes its lock late, so each of our commands holds one of its own until it ends.
        """
        if self._claim is None:
            self._claim = StackClaim(self.home / "pulumi" / f"claim-{self.stack}.lock", self.stack)
        cloud_use.refuse_if_locked(self._locks, self.stack)
        # An engine that is killed while it writes a state leaves such a file.
        for part in self._states().glob(f"{escape(self.stack)}.json*.tmp"):
            part.unlink(missing_ok=True)

    @property
    def _locks(self) -> Path:
        return self.home / "pulumi" / "state" / ".pulumi" / "locks"

    def _salt(self) -> str:
        return str((_load_yaml(self.local_file()) or {}).get(SALT, ""))

    @contextmanager
    def _stand_in_lock(self) -> Iterator[None]:
        """Holds a lock, so that two stacks that come up at once do not make the same stand-in twice."""
        with open_lock(self.home / "stand-ins.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def local_stacks_home() -> Path:
    return tools_home(os.environ)


def _load_yaml(file: Path) -> Any:
    return yaml.safe_load(file.read_text("utf-8")) if file.exists() else None
