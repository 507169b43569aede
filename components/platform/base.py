# SPDX-License-Identifier: Apache-2.0
"""All that is true of one platform where a person types: one object, which every room asks.

`components/<platform>/platform.py` has it, called PLATFORM. Nothing is imported before it is asked for: `check` needs
three of these members, and no SDK. What a platform lacks, it does not answer: the answers here say so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from catalog.platforms import import_platform, platforms
from components.plan import platform as plan_platform

if TYPE_CHECKING:
    from components.plan.model import Plan
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.images import ImagePlatform
    from components.platform.inputs import OwnInputs
    from components.platform.live import LiveQuestion, LiveSide
    from components.platform.local import LocalPlatform
    from components.platform.look import Question, RunLook
    from components.platform.rehearsal import RehearsalPlatform
    from components.platform.review import ReviewPlatform
    from components.platform.run_platform import RunPlatform
    from components.platform.tries import TryPlatform, TryQuestion
    from components.platform.values import Properties
    from schemas.checks.registry import CheckRule
    from schemas.model import Stack


class Answers:
    """Who answers for runs, files and images. Here: nobody, which is said in each caller's own kind of error."""

    name = ""

    def __init__(self, name: str = "") -> None:
        self.name = name or self.name

    @property
    def run_inputs(self) -> OwnInputs | None:
        """What runs take beside what every run takes. None: no run can be started."""
        return None

    def knows(self, run_id: str) -> bool:
        """Whether this is the id of one of its runs."""
        return False

    def runs(self, config: Properties) -> RunPlatform:
        """`config`: the provider's, and the inputs that connect."""
        raise LookupError(f"no run can be started on {self.name}")

    def look(self, question: Question) -> RunLook:
        from components.platform.look import UnknownPlaceError

        raise UnknownPlaceError(f"the stack runs on {self.name}: `trainyard runs` cannot show runs there yet")

    def tries(self, question: TryQuestion) -> TryPlatform:
        from components.platform.tries import TryError

        raise TryError(f"the stack runs on {self.name}: nothing can be tried there yet")

    def images(self, plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
        """`environment` says where its cloud is and who calls."""
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
        """Who answers a review's questions. A platform without answers of its own has no rules and no prices."""
        from components.platform.review import ReviewPlatform

        class NoAnswers(ReviewPlatform):
            pass

        return NoAnswers()

    def live(self, question: LiveQuestion) -> LiveSide:
        """The stack as its cloud has it now. A platform without an answer of its own has runs only."""
        from components.platform.live import LiveSide

        return LiveSide(question.declared, question.declared)

    def _without_local_cloud(self) -> Exception:
        from components.platform.local import LocalStackError

        return LocalStackError(f"the stack runs on {self.name}, which has no local cloud yet")

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.platform.files import TransferError

        raise TransferError(
            f"the stack runs on {self.name}: trainyard does not know where runs keep files there, so it cannot move any"
        )


class Platform(Answers, plan_platform.Platform):
    """What a stack file may say (`schemas.platforms.StackFile`), what follows from it, and who answers for the rest."""

    @property
    @abstractmethod
    def stack(self) -> type[Stack]:
        """The columns of every platform, and this platform's own."""

    @abstractmethod
    def rules(self) -> Mapping[str, CheckRule]:
        """The checks for stacks of this platform only."""

    def facts(self) -> Mapping[str, Any]:
        return {}


def platform(name: str) -> Platform:
    """The platform of this name. Its module is imported on first use."""
    found: Platform = import_platform(name)
    return found


def answers(name: str) -> Answers:
    """Who answers on a platform. A stack file with errors may name one that there is not."""
    return platform(name) if name in platforms() else Answers(name)


def answering(member: str) -> tuple[str, ...]:
    """The platforms that answer this themselves: `images` of those whose images are built."""
    return tuple(name for name in platforms() if does_answer(name, member))


def does_answer(name: str, member: str) -> bool:
    return getattr(type(platform(name)), member) is not getattr(Answers, member)
