# SPDX-License-Identifier: Apache-2.0
"""What the program says when this machine cannot do what a stack asks for."""

from __future__ import annotations

import sys
from pathlib import Path

import pulumi
import pytest

from components.program import deployer


def test_a_platform_whose_packages_are_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "components.oci.deploy", raising=False)
    monkeypatch.delitem(sys.modules, "components.oci.access", raising=False)
    monkeypatch.setitem(sys.modules, "pulumi_oci", None)
    with pytest.raises(pulumi.RunError, match="needs the Python package `pulumi_oci`") as refused:
        deployer("oci")
    assert "`pulumi install`" in str(refused.value)
    named = Path(str(refused.value).split(" -r ")[1])
    assert named.is_file()
