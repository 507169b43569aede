# SPDX-License-Identifier: Apache-2.0
"""The folders of this node's processes: restores checkpoints, and uploads files that the processes write."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from launcher.board_client import ACCESS_SECONDS, ACCESS_VARIABLE, LOST_SECONDS, LOST_VARIABLE
from launcher.code import Patterns, clone_code
from launcher.document import Launch
from launcher.errors import MissingError
from launcher.fence import SUFFIX, Fence
from launcher.losses import ON_A_REAL_CLOUD, Loss, count_files, describe_losses, format_size, loss_record
from launcher.printing import LinePrinter
from launcher.readiness import Wait
from launcher.retries import start_name
from launcher.settings import number_setting, writable_folder
from launcher.stores import Open, StoreError
from launcher.stray_files import KeptFile, StrayFiles, lost_elsewhere
from launcher.sync import Sync

PLACE_VARIABLE = "TRAINYARD_PLACE"
# The folder within the output for files from the working directory.
WORKING_DIRECTORY = "workdir"
_NO_BUCKET = "this run has no bucket"
_LOOK_SECONDS = 2.0
# The path of a socket has at most 107 bytes. HOME and TMPDIR may be long.
_SHORT = "/tmp"


@dataclass
class Workplace:
    """`output` is uploaded at the end; `checkpoints` are uploaded during training, and restored before it."""

    launch: Launch
    environment: Mapping[str, str]
    say: LinePrinter
    open_folder: Open
    root: Path = field(init=False)
    # The files that are lost with the node, and those that a real cloud would lose; set at the end.
    lost: dict[str, Any] | None = field(default=None, init=False)
    local_only: dict[str, Any] | None = field(default=None, init=False)
    _checkpoints: Sync | None = field(default=None, init=False)
    _fence: Fence | None = field(default=None, init=False)
    _stray_files: StrayFiles = field(init=False)
    _scratch: str | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _done: threading.Event = field(default_factory=threading.Event, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        base = writable_folder(self.environment, PLACE_VARIABLE) or self.environment.get("HOME") or ""
        if not base or not os.access(base, os.W_OK):
            base = self.environment.get("TMPDIR") or "/tmp"
        self.root = Path(base) / f"trainyard-{os.getpid()}"
        for folder in (self.output, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        if self.launch.checkpoints is not None:
            self._fence = self._fence_of(self.launch.checkpoints)
            self._checkpoints = self._sync(self.checkpoints, self.launch.checkpoints, "", self._fence)
        folders = (str(self.root), self.scratch, *map(str, self._outputs()))
        own = frozenset(os.path.realpath(folder) for folder in folders if folder)
        self._stray_files = StrayFiles(self.environment, Patterns.of(self.launch.keep), own)

    def _sync(self, local: Path, uri: str, below: str, fence: Fence | None = None) -> Sync:
        return Sync(local, self.open_folder(uri), below, self.say, fence)

    def _fence_of(self, uri: str) -> Fence:
        start = start_name(self.launch) or f"attempt-{self.launch.attempt}"
        lost_after = number_setting(self.environment, LOST_VARIABLE, LOST_SECONDS)
        return Fence(lambda: self.open_folder(uri + SUFFIX), start, self.launch.rank, self.say, lost_after)

    @property
    def output(self) -> Path:
        """The folder of the run's results."""
        return self.root / "output"

    @property
    def checkpoints(self) -> Path:
        """The folder of files from which a restarted run resumes."""
        return self.root / "checkpoints"

    @property
    def progress(self) -> Path:
        """The file to which a script may append a line of JSON for each step."""
        return self.root / "progress.jsonl"

    @property
    def scratch(self) -> str:
        """A folder with a short path, for sockets. Its files are not kept."""
        if self._scratch is None:
            self._scratch = (
                self._make_scratch() if self.launch.speaks or self.launch.uses_placeholder("{scratch}") else ""
            )
        return self._scratch

    @staticmethod
    def _make_scratch() -> str:
        import tempfile

        return tempfile.mkdtemp(prefix="trainyard-", dir=_SHORT if os.access(_SHORT, os.W_OK) else None)

    @property
    def variables(self) -> dict[str, str]:
        """The variables that tell processes about these folders."""
        return {
            "TRAINYARD_OUTPUT": str(self.output),
            "TRAINYARD_CHECKPOINTS": str(self.checkpoints),
            "TRAINYARD_PROGRESS": str(self.progress),
            **self.launch.identity.outputs(str(self.output)),
        }

    def code(self) -> str:
        """The folder of code from git; empty if the image contains the code, or the platform brings it."""
        return clone_code(self.launch, self.environment, self.root, self.say)

    def begin(self, folder: str) -> None:
        """Called before training begins in this folder. Files that it makes there are found at the end."""
        self._stray_files.begin(folder)

    def restore(self, wait: Wait) -> None:
        """Restores the checkpoints before every life. From then on they are uploaded, too."""
        if self._checkpoints is None or self._fence is None:
            return
        try:
            self._fence.enter(wait, number_setting(self.environment, ACCESS_VARIABLE, ACCESS_SECONDS))
            with self._lock:
                count = self._checkpoints.restore()
        except (StoreError, OSError) as error:
            raise MissingError(f"checkpoints cannot be downloaded from {self.launch.checkpoints}: {error}") from None
        if count:
            self.say(f"{count} file{'s' * (count > 1)} of checkpoints restored from {self.launch.checkpoints}")
        if self._thread is None:
            self._thread = threading.Thread(target=self._upload_regularly, name="checkpoints", daemon=True)
            self._thread.start()

    def _upload_regularly(self) -> None:
        troubled = False
        while not self._done.wait(_LOOK_SECONDS):
            try:
                with self._lock:
                    # Not once this node removes the folder itself: the missing files were not removed by the script.
                    if self._checkpoints is not None and not self._done.is_set():
                        self._checkpoints.changed()
                troubled = False
            except (StoreError, OSError) as error:
                if not troubled:
                    self.say(f"checkpoints cannot be uploaded at the moment, trying again: {error}")
                troubled = True

    def before_the_end(self) -> None:
        """Called before the processes are told to end: files that they are writing may stay partial."""
        if self._checkpoints is not None:
            self._checkpoints.before_the_end()

    def flush(self, whole: bool) -> bool:
        """Uploads the last checkpoints, after the processes. Returns True also if a newer start writes them now."""
        if self._checkpoints is None:
            return True
        try:
            with self._lock:
                self._checkpoints.everything(whole)
        except (StoreError, OSError) as error:
            self.say(f"checkpoints could not be uploaded: {error}")
            return False
        return True

    def finish(self) -> bool:
        """Uploads the results, and names the files that are lost. Returns False if the output could not be uploaded:
        then the folder is not removed."""
        import shutil

        self._done.set()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)
        kept, lost, cut = self._stray_files.look()
        spared = lost_elsewhere(kept) if self.launch.folder is not None else []
        if self.launch.folder is None:
            saved = True
            lost += self._without_bucket(kept)
        else:
            saved = self._save(self.launch.folder)
            saved = self._save_kept(self.launch.folder, kept, lost) and saved
        bucket = self.launch.folder is not None
        self.lost, self.local_only = loss_record(lost, bucket), loss_record(spared, bucket)
        for line in (*describe_losses(lost, bucket), *describe_losses(spared, bucket, ON_A_REAL_CLOUD)):
            self.say(line)
        if cut:
            self.say("there are too many files, or too deep folders, to look at all: others may be lost with this node")
        if saved:
            with self._lock:
                shutil.rmtree(self.root, ignore_errors=True)
        return saved

    def _outputs(self) -> list[Path]:
        return sorted({self.output, *map(Path, self.launch.identity.outputs(str(self.output)).values())})

    @property
    def _below(self) -> str:
        return "output" if self.launch.rank == 0 else f"output/rank-{self.launch.rank}"

    def _save(self, uri: str) -> bool:
        try:
            number_put = sum(self._sync(output, uri, self._below).everything(whole=True) for output in self._outputs())
        except (StoreError, OSError) as error:
            self.say(f"the files in {self.output} could not be uploaded to the bucket: {error}")
            return False
        if number_put:
            self.say(f"{count_files(number_put)} of output put into {uri}/{self._below}")
        return True

    def _save_kept(self, uri: str, kept: list[KeptFile], lost: list[Loss]) -> bool:
        """Uploads files from the working directory. Returns False only if a file that the job's `keep:` names could not
        be uploaded: nobody asked for the others."""
        if not kept:
            return True
        remote = f"{self._below}/{self._free_name()}"
        sync = self._sync(Path(self._stray_files.folder), uri, remote)
        files, size, trouble, whole = 0, 0, "", True
        for file in kept:
            try:
                why = trouble or sync.put(file.name, file.stamp)
            except (StoreError, OSError) as error:
                why = trouble = f"could not be uploaded: {error}"
            if why:
                lost.append(Loss(file.name, file.stamp[0], why, inside=True))
                whole = whole and not (trouble and file.asked)
            else:
                files, size = files + 1, size + file.stamp[0]
        if files:
            made = f"{count_files(files)} ({format_size(size)}) that training made in its working directory"
            self.say(f"{made} put into {uri}/{remote}")
        return whole

    def _free_name(self) -> str:
        """The name of a folder within the output that the script has not used itself."""
        name = WORKING_DIRECTORY
        while any(os.path.lexists(folder / name) for folder in self._outputs()):
            name += "_"
        return name

    def _without_bucket(self, kept: list[KeptFile]) -> list[Loss]:
        made = [Loss(file.name, file.stamp[0], _NO_BUCKET) for file in kept]
        return made + [Loss(path, size, _NO_BUCKET) for path, size in self._stray_files.whole(self._outputs())]
