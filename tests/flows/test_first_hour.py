# SPDX-License-Identifier: Apache-2.0
"""docs/first-hour.md, typed from top to bottom: six scripts that know nothing of trainyard, to results on disk."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.pages import PROJECT, a_desk, as_shell, read_sections, run_typed

pytestmark = pytest.mark.engine

PAGE = PROJECT / "docs" / "first-hour.md"
SCRIPTS = PROJECT / "docs" / "first-hour"
_RESULT = re.compile(r"^    (results/\S+)$", re.MULTILINE)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The desk of a newcomer whose machine has the frameworks' environments, as `make test` makes them."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    with a_desk(tmp_path) as variables:
        yield {**variables, "XDG_CACHE_HOME": cache}


def test_the_page_leads_from_a_folder_to_a_result(desk: dict[str, str], tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(SCRIPTS, work / "docs" / "first-hour")
    blocks = [block for blocks in read_sections(PAGE).values() for block in blocks]
    printed = run_typed("\n".join(map(as_shell, blocks)), desk, work)
    for script in SCRIPTS.rglob("*.py"):
        copy = work / "first" / script.relative_to(SCRIPTS)
        assert copy.read_bytes() == script.read_bytes(), "a script had to be changed"
    promised = _RESULT.findall(PAGE.read_text())
    assert {path.split("/")[1] for path in promised} == {folder.name for folder in SCRIPTS.iterdir()}
    assert [path for path in promised if not (work / path).stat().st_size] == []
    assert np.loadtxt(work / "results/dask/first/workdir/means.csv", delimiter=",").shape == (8,)
    # What lies in /tmp is lost with the node, and named with the way to keep it.
    assert re.search(r"/tmp/keras-model", printed)
