# SPDX-License-Identifier: Apache-2.0
"""Missing requirements for machines of the local AWS are reported before anything is made."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from components.aws.local.stacks import AwsLocalPlatform
from components.plan.build import plan_file
from components.platform.local import LocalStackError

STACK = Path(__file__).parents[5] / "stacks" / "Pulumi.aws-dl1-resnet.yaml"


def test_without_ssh_keygen_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    nothing: Any = None
    with pytest.raises(LocalStackError, match="need ssh-keygen") as told:
        AwsLocalPlatform().stand_in(nothing, plan_file(STACK, print), nothing, print)
    assert str(told.value).splitlines()[1] == "As root: apt-get install --no-install-recommends openssh-client"
