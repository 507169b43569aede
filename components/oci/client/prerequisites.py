# SPDX-License-Identifier: Apache-2.0
"""The prerequisites of a stack on OCI (`trainyard doctor`). What asks the tenancy is imported on first use, since half
of the checks need this machine only."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from functools import partial

from components.oci.client.key_files import check_key_files
from components.oci.client.session import session_of_caller
from components.plan.model import Plan
from components.platform.prerequisites import Check, CloudChecks, Prerequisites, Problem, Question


class OciPrerequisites(Prerequisites):
    def local_checks(self, question: Question) -> Iterable[Check]:
        session = session_of_caller(question.where)
        yield Check("credentials", partial(check_key_files, session, question.plan is not None))
        if question.plan is not None and _uses_ads(question.plan):
            yield Check("ADS", _check_ads)

    def cloud_checks(self, question: Question, plan: Plan) -> CloudChecks:
        from components.oci.client.tenancy_checks import TenancyChecks
        from components.oci.plan import oci_plan

        asked = TenancyChecks(session_of_caller(question.where), question, oci_plan(plan))
        return CloudChecks(Check("account", asked.check_account), tuple(asked.others()))


def _uses_ads(plan: Plan) -> bool:
    from components.oci.client.registry import built_with_ads

    return any(map(built_with_ads, plan.jobs.values()))


def _check_ads() -> Iterator[Problem]:
    if shutil.which("ads") is None:
        yield Problem(
            "images of this stack are built with ADS, and there is no `ads` on PATH",
            "pip install 'oracle-ads[opctl]', in an environment of its own",
        )


PREREQUISITES = OciPrerequisites()
