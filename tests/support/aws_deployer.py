# SPDX-License-Identifier: Apache-2.0
"""A user of the local AWS whose only permissions are those that `trainyard access` prints for a stack's deployer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from localcloud import admin
from tests.support.aws_clients import AwsClients
from tests.support.local_team import Team

PERSON = "user"


class Deployer:
    """Deploys the first stack of a team. During a change of the stack file, the policies of the old and the new file
    are attached (docs/access.md), because what the new file no longer has must be deleted."""

    def __init__(self, team: Team, stands_in: bool = False) -> None:
        """`stands_in`: the file names existing resources. Those of the local cloud have other ids, and the policies
        need them."""
        self.team, self._stands_in = team, stands_in
        self.name = team.file.stem.removeprefix("Pulumi.")
        self._iam = AwsClients(team.cloud)["iam"]
        self._before: Mapping[str, Any] = {}
        self._attached: list[str] = []

    def printed(self) -> dict[str, Any]:
        """The policy documents that the command prints, by policy name."""
        stacks = self._file_of_here() if self._stands_in else self.team.stacks
        words = ("access", self.name, "--stacks", str(stacks), "--deployers", "people", "--format", "json")
        done = self.team.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        policies = json.loads(done.stdout)["deployer"]
        return {policy["name"]: policy["document"] for policy in policies}

    def _file_of_here(self) -> Path:
        """A folder with the code and the local copy of the stack file. A preview makes that copy."""
        self.team.trainyard("preview", self.name)
        folder = self.team.stacks.with_name("here")
        folder.mkdir(exist_ok=True)
        shutil.copy(self.team.home / "pulumi" / "stacks" / self.team.file.name, folder)
        shutil.copytree(self.team.stacks / "examples", folder / "examples", dirs_exist_ok=True)
        return folder

    def trainyard(self, *words: str) -> str:
        """Runs a trainyard command as this user."""
        now = self.printed()
        self._attach({**{f"{name}-before": document for name, document in self._before.items()}, **now})
        self._before = now
        with patch.dict("os.environ", self.team.cloud.env_for(PERSON)):
            return self.team.trainyard(*words)

    def refused(self) -> set[tuple[str, str]]:
        """The actions and resources that this user was refused."""
        return {(row["permissions"][0], row["target"]["resource"]) for row in self._asked() if not row["allowed"]}

    def allowed(self) -> set[str]:
        return {row["permissions"][0] for row in self._asked() if row["allowed"]}

    def _asked(self) -> list[dict[str, Any]]:
        rows = admin.list_calls(self.team.cloud, of="aws")
        return [row for row in rows if row["principal"]["name"] == PERSON]

    def detach(self) -> None:
        for arn in self._attached:
            self._iam.detach_user_policy(UserName=PERSON, PolicyArn=arn)
            self._iam.delete_policy(PolicyArn=arn)
        self._attached.clear()

    def _attach(self, documents: Mapping[str, Any]) -> None:
        self.detach()
        for name, document in documents.items():
            made = self._iam.create_policy(PolicyName=name, Path="/deployers/", PolicyDocument=json.dumps(document))
            self._attached.append(made["Policy"]["Arn"])
            self._iam.attach_user_policy(UserName=PERSON, PolicyArn=self._attached[-1])
