# SPDX-License-Identifier: Apache-2.0
"""Environments have the packages that catalog/environments.toml lists, because `check` uses only that table."""

from __future__ import annotations

import json
import subprocess

import pytest
from packaging.version import Version

from catalog.environments import environment_facts, versions_in
from localcloud.environments.find import MissingEnvironment, find_environment

_LOOK = """
import importlib.util, json, sys
from importlib import metadata
names, modules = json.loads(sys.argv[1])
print(json.dumps([{n: metadata.version(n) for n in names}, [m for m in modules if not importlib.util.find_spec(m)]]))
"""


@pytest.mark.parametrize("name", environment_facts())
def test_an_environment_has_the_packages_of_its_row(name: str) -> None:
    made, row = find_environment(name), environment_facts()[name]
    if isinstance(made, MissingEnvironment):
        pytest.skip(f"the environment {name}: {made.reason}; {made.remedy}")
    words = [str(made.interpreter), "-I", "-c", _LOOK, json.dumps([sorted(row.provides), sorted(row.offers)])]
    versions, lacking = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert lacking == []
    for package, listed in row.provides.items():
        releases = [Version(one).release for one in versions_in(listed)]
        assert Version(versions[package]).release in releases, f"{package} {versions[package]}"
