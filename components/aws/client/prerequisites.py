# SPDX-License-Identifier: Apache-2.0
"""The prerequisites of a stack on AWS (`trainyard doctor`). What asks the account is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from components.plan.model import Plan
from components.platform.prerequisites import Check, CloudChecks, Prerequisites, Problem, Question, check_private_file

_FILES = {"AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials", "AWS_CONFIG_FILE": "~/.aws/config"}


class AwsPrerequisites(Prerequisites):
    def local_checks(self, question: Question) -> Iterable[Check]:
        for variable, usual in _FILES.items():
            path = Path(question.environment.get(variable) or usual).expanduser()
            # Credentials may also come from variables, from the machine, or from a sign-in.
            if path.exists():
                yield Check("credentials", partial(_check_file, path))

    def cloud_checks(self, question: Question, plan: Plan) -> CloudChecks:
        from components.aws.client.account_checks import AccountChecks
        from components.aws.client.aws_session import aws_session_of_caller
        from components.aws.plan import aws_dl1_plan

        asked = AccountChecks(aws_session_of_caller(question.where), question, aws_dl1_plan(plan))
        return CloudChecks(Check("account", asked.check_account), tuple(asked.others()))


def _check_file(path: Path) -> Iterator[Problem]:
    return check_private_file(path, "the file of AWS's clients", "`aws configure` makes one")


PREREQUISITES = AwsPrerequisites()
