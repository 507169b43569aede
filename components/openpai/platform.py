# SPDX-License-Identifier: Apache-2.0
"""The plan as jobs of OpenPAI. Methods import what they need, because most commands need little of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.plan.platform import AccessReport, Rendezvous, Words
from components.platform.base import Platform

if TYPE_CHECKING:
    from components.openpai.plan import OpenPaiPlan
    from components.openpai.stack import OpenPaiStack
    from components.plan.model import Plan
    from components.plan.ports import ResolvedJob
    from components.platform.client import Runs, Where
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.images import ImagePlatform
    from components.platform.inputs import OwnInputs
    from components.platform.local import LocalPlatform
    from components.platform.rehearsal import RehearsalPlatform
    from components.platform.review import ReviewPlatform
    from components.platform.values import Properties
    from schemas.findings import CheckRule
    from schemas.model import Layout


class OpenPaiPlatform(Platform):
    name = "openpai"
    way_to_services = "over the cluster's network"

    @property
    def stack(self) -> type[OpenPaiStack]:
        from components.openpai.stack import OpenPaiStack

        return OpenPaiStack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.openpai.checks  # noqa: F401  # declares them
        from components.openpai.stack import RULES

        return RULES

    def lower(self, stack: OpenPaiStack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> OpenPaiPlan:
        from components.openpai.plan import lower

        return lower(stack, plan, jobs)

    def rendezvous(self, layout: Layout) -> Rendezvous:
        return Rendezvous("openpai", "addresses and ports are those that OpenPAI tells each task")

    def words(self, plan: OpenPaiPlan) -> Words:
        from components.openpai.plan import words

        return words(plan)

    def access_report(self, plan: OpenPaiPlan, deployers: str) -> AccessReport:
        from components.openpai.plan import build_report

        return build_report(plan)

    def deploy(self, plan: OpenPaiPlan, folder: Path) -> dict[str, Any]:
        from components.openpai.deploy import deploy

        return deploy(plan, folder)

    @property
    def run_inputs(self) -> OwnInputs:
        from components.openpai.client.inputs import INPUTS

        return INPUTS

    def knows(self, run_id: str) -> bool:
        from components.openpai.client.runs import knows

        return knows(run_id)

    def runs(self, config: Properties) -> Runs:
        from components.openpai.client.runs import OpenPaiRuns
        from components.openpai.client.session import Session

        return OpenPaiRuns(Session.of(config))

    def runs_of_caller(self, where: Where) -> Runs:
        from components.openpai.client.runs import runs_of_caller

        return runs_of_caller(where)

    def images(self, plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
        from components.openpai.client.images import make
        from components.openpai.plan import openpai_plan

        return make(openpai_plan(plan), environment)

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.openpai.client.files import make

        return make(request)

    @property
    def local(self) -> LocalPlatform:
        from components.openpai.local.stacks import OpenPaiLocalPlatform

        return OpenPaiLocalPlatform()

    @property
    def rehearsal(self) -> RehearsalPlatform:
        from components.openpai.local.rehearsal import OpenPaiRehearsalPlatform

        return OpenPaiRehearsalPlatform()

    @property
    def review(self) -> ReviewPlatform:
        from components.openpai.review import OpenPaiReview

        return OpenPaiReview()


PLATFORM = OpenPaiPlatform()
