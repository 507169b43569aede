# SPDX-License-Identifier: Apache-2.0
"""The program's errors when this machine lacks something that a stack needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from catalog.platforms import require_capability
from components.plan.platform import Deployment
from components.program import not_installed
from tests.support.examples import plan


def test_a_platform_whose_packages_are_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "components.oci.resources.deploy", raising=False)
    monkeypatch.delitem(sys.modules, "components.oci.resources.access", raising=False)
    monkeypatch.setitem(sys.modules, "pulumi_oci", None)
    with pytest.raises(ModuleNotFoundError) as missing:
        require_capability("oci", Deployment).deploy(plan("local"), tmp_path)
    told = not_installed("oci", missing.value)
    assert "needs the Python package `pulumi_oci`" in told
    assert "`pulumi install`" in told
    assert Path(told.split(" -r ")[1]).is_file()
