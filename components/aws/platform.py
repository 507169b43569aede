# SPDX-License-Identifier: Apache-2.0
"""The plan as machines of AWS. Methods import what they need, because most commands need little of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.tables import table
from components.plan.platform import AccessReport, Rendezvous, Words
from components.platform.base import Platform

if TYPE_CHECKING:
    from components.aws.plan import AwsDl1Plan
    from components.aws.stack import AwsDl1Stack
    from components.plan.launch import RolePart
    from components.plan.model import Plan
    from components.plan.ports import ResolvedJob
    from components.platform.client import Runs, Where
    from components.platform.files import StoreOpener, StoreRequest
    from components.platform.images import ImagePlatform
    from components.platform.inputs import OwnInputs
    from components.platform.live import LiveQuestion, LiveSide
    from components.platform.local import LocalPlatform
    from components.platform.rehearsal import RehearsalPlatform
    from components.platform.review import OfflineCloud, ReviewPlatform
    from components.platform.values import Properties
    from schemas.findings import CheckRule
    from schemas.model import Layout, Run


class AwsDl1Platform(Platform):
    name = "aws-dl1"
    way_to_services = "through gateway endpoints, or NAT"
    # A job is one cluster, and each run needs the whole cluster.
    runs_at_once = False

    @property
    def stack(self) -> type[AwsDl1Stack]:
        from components.aws.stack import AwsDl1Stack

        return AwsDl1Stack

    def rules(self) -> Mapping[str, CheckRule]:
        import components.aws.checks  # noqa: F401  # declares them
        from components.aws.stack import RULES

        return RULES

    def facts(self) -> Mapping[str, Any]:
        return {"regions": table("aws_dl1")["regions"]}

    def lower(self, stack: AwsDl1Stack, plan: Plan, jobs: Mapping[str, ResolvedJob]) -> AwsDl1Plan:
        from components.aws.plan import lower

        return lower(stack, plan)

    def rendezvous(self, layout: Layout) -> Rendezvous:
        return Rendezvous("bucket", "addresses are exchanged in the bucket")

    def environments(
        self, job: ResolvedJob, part: RolePart, names: Mapping[str, str], run: Run, ranks: range
    ) -> Iterator[Mapping[str, str]]:
        environment: Mapping[str, str] = table("aws_dl1")["environment"]
        return repeat(environment, len(ranks))

    def words(self, plan: AwsDl1Plan) -> Words:
        from components.aws.plan import words

        return words(plan)

    def access_report(self, plan: AwsDl1Plan, deployers: str) -> AccessReport:
        from components.aws.access_report import build_report

        return build_report(plan, deployers)

    def deploy(self, plan: AwsDl1Plan, folder: Path) -> dict[str, Any]:
        from components.aws.resources.deploy import deploy

        return deploy(plan, folder)

    @property
    def run_inputs(self) -> OwnInputs:
        from components.aws.client.inputs import INPUTS

        return INPUTS

    def knows(self, run_id: str) -> bool:
        from components.aws.client.runs import knows

        return knows(run_id)

    def runs(self, config: Properties) -> Runs:
        from components.aws.client.runs import AwsRuns
        from components.s3 import Session

        return AwsRuns(Session.of(config))

    def runs_of_caller(self, where: Where) -> Runs:
        from components.aws.client.runs import runs_of_caller

        return runs_of_caller(where)

    def images(self, plan: Plan, environment: Mapping[str, str]) -> ImagePlatform:
        from components.aws.client.images import make
        from components.aws.plan import aws_dl1_plan

        return make(aws_dl1_plan(plan), environment)

    def files(self, request: StoreRequest) -> StoreOpener:
        from components.aws.client.files import make

        return make(request)

    def live(self, question: LiveQuestion) -> LiveSide:
        from components.aws.client.live import make

        return make(question)

    @property
    def offline(self) -> OfflineCloud:
        from components.aws.offline import AwsOffline

        return AwsOffline()

    @property
    def local(self) -> LocalPlatform:
        from components.aws.local.stacks import AwsLocalPlatform

        return AwsLocalPlatform()

    @property
    def rehearsal(self) -> RehearsalPlatform:
        from components.aws.local.rehearsal import AwsRehearsalPlatform

        return AwsRehearsalPlatform()

    @property
    def review(self) -> ReviewPlatform:
        from components.aws.review.platform import AwsReview

        return AwsReview()


PLATFORM = AwsDl1Platform()
