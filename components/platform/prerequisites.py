# SPDX-License-Identifier: Apache-2.0
"""What has to be there before a stack can be brought up (`trainyard doctor`), as checks of a platform. Each check asks
one question, and answers with sentences."""

from __future__ import annotations

import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from catalog.platforms import Capability

if TYPE_CHECKING:
    from components.plan.model import Plan
    from components.platform.client import Where
    from components.platform.images import Endpoint
    from components.platform.review import Snapshot


@dataclass(frozen=True, slots=True)
class Problem:
    """A prerequisite that is not met, and what to do about it. `stops`: until then, the cloud cannot be asked."""

    words: str
    remedy: str
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that its reader should know, though nothing is broken, or nobody can tell."""

    words: str


@dataclass(frozen=True, slots=True)
class LiveNetwork:
    """A network as it is in the cloud, to be compared with the rules of the plan. `place`: where a rule belongs."""

    snapshot: Snapshot
    place: str


Answer = Problem | Remark | LiveNetwork
# Raises ProviderError if the question cannot be asked.
Ask = Callable[[], Iterable[Answer]]


@dataclass(frozen=True, slots=True)
class Check:
    title: str
    ask: Ask


@dataclass(frozen=True, slots=True)
class Question:
    """`plan`: None without a stack. `environment`: the variables with the credentials and endpoints of the caller.
    `acts_as`: whose rights the caller should have: those of who runs `up`, or of who starts runs. `registry`: where a
    registry is reached."""

    where: Where
    environment: Mapping[str, str]
    registry: Callable[[str], Endpoint]
    plan: Plan | None = None
    acts_as: Literal["deployer", "user"] = "deployer"


@dataclass(frozen=True, slots=True)
class CloudChecks:
    """`first`: whether the cloud answers this caller at all. The others are asked if it finds nothing."""

    first: Check
    others: tuple[Check, ...]


class Prerequisites(Capability, ABC):
    place = "client.prerequisites.PREREQUISITES"
    lacking = "the stack runs on {platform}, whose cloud cannot be asked for prerequisites yet"

    @abstractmethod
    def local_checks(self, question: Question) -> Iterable[Check]:
        """What can be asked on this machine, without network and without an SDK. Without a plan, only what is there is
        checked."""

    @abstractmethod
    def cloud_checks(self, question: Question, plan: Plan) -> CloudChecks: ...


def check_private_file(path: Path, what: str, remedy: str) -> Iterator[Problem]:
    """Whether the file is there, and only its owner, who is the caller, may read it."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            # A pipe is not opened: it may have no writer.
            yield Problem(f"{what} is not a file: {path}", remedy, stops=True)
            return
        path.open("rb").close()
    except FileNotFoundError:
        yield Problem(f"{what} is missing: {path}", remedy, stops=True)
        return
    except OSError as error:
        own = f"sudo chown $USER {path}; chmod 600 {path}"
        yield Problem(f"{what} cannot be read: {path}: {error.strerror}", own, stops=True)
        return
    if found.st_uid != os.getuid():
        yield Problem(f"{what} belongs to another account (uid {found.st_uid}): {path}", f"sudo chown $USER {path}")
    elif found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = f"{stat.S_IMODE(found.st_mode):o}"
        yield Problem(f"{what} can be used by other accounts (mode {mode}): {path}", f"chmod 600 {path}")
