# SPDX-License-Identifier: Apache-2.0
"""No request, however ambiguous, changes or reads anything outside of its sender's rights. TRAINYARD_TORTURE=<count>
sends more requests. Each fixed defect is found again when it is put back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support import borders_aws
from tests.support.borders import Border, CrossedError, hold
from tests.support.borders_aws_put_back import PUT_BACK as AWS_PUT_BACK
from tests.support.counts import FIRST, wanted

# A row for each cloud: what generates its requests, and the defects that can be put back.
CLOUDS: Mapping[str, Callable[[Path], AbstractContextManager[Border]]] = {"aws": borders_aws.border}
PUT_BACK = {("aws", name): defect for name, defect in AWS_PUT_BACK.items()}
COUNT = wanted(sample=100, full=20_000)
PORTION = 2_000
# The most requests until a defect that was put back is found.
MOST = 2_000


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("portion", range(0, COUNT, PORTION))
def test_no_request_changes_anything_that_its_sender_was_not_granted(cloud: str, portion: int, tmp_path: Path) -> None:
    with CLOUDS[cloud](tmp_path) as border:
        hold(border, FIRST + portion, min(PORTION, COUNT - portion))


@pytest.mark.parametrize(("cloud", "defect"), PUT_BACK, ids=[" ".join(row) for row in PUT_BACK])
def test_a_defect_that_is_put_back_is_found(
    cloud: str, defect: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with PUT_BACK[cloud, defect](), CLOUDS[cloud](tmp_path) as border, pytest.raises(CrossedError) as found:
        hold(border, FIRST, MOST, breaks=False)
    record_property("seed", found.value.seed)
    print(f"{cloud} {defect}: {found.value}")
