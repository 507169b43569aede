# SPDX-License-Identifier: Apache-2.0
"""What is judged is what is done: requests drawn to reach every place where two programs could read one in two ways.

Whatever a caller sends to the local OCI or OpenPAI, nothing changes outside of what the caller is granted, and nothing
of it is shown. A failure names the seed: `TRAINYARD_FIRST_SEED=… TRAINYARD_TORTURE=1` repeats it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import closing

import pytest

from localcloud.control import Cloud
from tests.support.borders_oci import OciBorder
from tests.support.borders_openpai import OpenPaiBorder, shows
from tests.support.counts import FIRST, wanted

REQUESTS = wanted(sample=200, full=20_000)
# So many of those that were drawn reach a handler: others would only try how requests are refused.
_FEWEST_ANSWERED = 0.1


@pytest.mark.parametrize("border", [OciBorder, OpenPaiBorder])
def test_nothing_changes_outside_of_what_is_granted(
    border: Callable[[Cloud], OciBorder | OpenPaiBorder], shared_cloud: Cloud
) -> None:
    with closing(border(shared_cloud)) as there:
        before, statuses = there.outside(), Counter[int]()
        for seed in range(FIRST, FIRST + REQUESTS):
            asked, status, content = there.ask(random.Random(seed))
            told = f"seed {seed}: {status} for {asked}"
            assert there.outside() == before, f"another's was changed. {told}"
            assert not shows(content, [there.canary]), f"another's was shown. {told}"
            assert status < 500 or status == 501, told
            statuses[status // 100] += 1
        assert statuses[2] > REQUESTS * _FEWEST_ANSWERED, statuses
    assert "Traceback" not in (shared_cloud.home / "server.log").read_text(errors="replace")
