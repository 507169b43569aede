# SPDX-License-Identifier: Apache-2.0
"""The interface of a platform: one object gives access to everything that commands and the provider need of it.

It is `PLATFORM` in `components/<platform>/platform.py`. Each member imports its modules when it is used: `check` needs
three members, and no SDK. A platform overrides the members that it supports; the defaults here raise an error that
says what the platform lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from catalog.platforms import find_platform, platforms
from components.plan import platform as plan_platform
from schemas.stack_file import StackFile

if TYPE_CHECKING:
    from components.plan.model import Plan
    from components.platform.client import Runs, Where
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.images import ImagePlatform
    from components.platform.inputs import OwnInputs
    from components.platform.live import LiveQuestion, LiveSide
    from components.platform.local import LocalPlatform
    from components.platform.rehearsal import RehearsalPlatform
    from components.platform.review import OfflineCloud, ReviewPlatform
    from components.platform.values import Properties


class PlatformServices:
    """Runs, files, images and the local cloud of a platform. The defaults raise the error that each caller expects."""

    name = ""

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name

    @property
    def run_inputs(self) -> OwnInputs | None:
        """The inputs that only this platform's runs have. None: no run can be started."""
        return None

    def knows(self, run_id: str) -> bool:
        """Whether a run's id has the form that this platform gives."""
        return False

    def runs(self, config: Properties) -> Runs:
        """The provider's client of runs. `config`: its configuration, and the inputs with endpoints and credentials."""
        raise LookupError(f"no run can be started on {self.name}")

    def runs_of_caller(self, where: Where) -> Runs:
        """The client of runs for the user of a command."""
        from components.platform.client import UnknownPlaceError

        raise UnknownPlaceError(f"the stack runs on {self.name}: `trainyard runs` cannot show runs there yet")

    def images(self, plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
        """Builds and pushes images. `environment` has the cloud's endpoints and the caller's credentials."""
        from components.platform.images import ImageError

        others = " and ".join(answering("images"))
        raise ImageError(f"{plan.stack} runs on {self.name}\nImages are built for stacks of {others} so far")

    @property
    def local(self) -> LocalPlatform:
        raise self._without_local_cloud()

    @property
    def rehearsal(self) -> RehearsalPlatform:
        raise self._without_local_cloud()

    @property
    def review(self) -> ReviewPlatform:
        """The platform's part of a review. The default has no rules and no prices."""
        from components.platform.review import ReviewPlatform

        class NoAnswers(ReviewPlatform):
            pass

        return NoAnswers()

    def live(self, question: LiveQuestion) -> LiveSide:
        """Reads the current state of the stack from its cloud. The default is for platforms that have runs only."""
        from components.platform.live import LiveSide

        return LiveSide(question.declared, question.declared)

    @property
    def offline(self) -> OfflineCloud:
        """Replaces the cloud while a program is recorded. Programs of most platforms make no lookups."""
        from components.platform.review import OfflineCloud

        return OfflineCloud()

    def _without_local_cloud(self) -> Exception:
        from components.platform.local import LocalStackError

        return LocalStackError(f"the stack runs on {self.name}, which has no local cloud yet")

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.platform.files import TransferError

        raise TransferError(f"the stack runs on {self.name}: trainyard cannot move files of runs there")


class Platform(PlatformServices, plan_platform.Platform, StackFile):
    """One platform: its part of the stack file, its part of the plan, and the rest."""


def answering(member: str) -> tuple[str, ...]:
    """The platforms that override this member: `images` gives those whose images trainyard builds."""
    return tuple(name for name in platforms() if does_answer(name, member))


def does_answer(name: str, member: str) -> bool:
    return getattr(type(find_platform(name, Platform)), member) is not getattr(PlatformServices, member)
