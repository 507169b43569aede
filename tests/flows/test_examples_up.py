# SPDX-License-Identifier: Apache-2.0
"""Examples for OCI go up side by side on one local cloud, with empty previews between, go down, and nothing is left."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.counts import FIRST, drawn, wanted
from tests.support.examples import EXAMPLES
from tests.support.local_team import Team

pytestmark = pytest.mark.engine

OCI = [name for name in EXAMPLES if name.startswith("oci-")]
# Examples that need another stack first, or stand-ins for existing resources.
ALWAYS = ["oci-existing", "oci-existing-vcn", "oci-team"]
USES = {"oci-team": "oci-platform"}


def _groups() -> list[list[str]]:
    """`make test` takes one of those, by the seed. `make torture` takes all at once, and pairs."""
    count = wanted(0, 18)
    if not count:
        return [drawn(ALWAYS, 1)]
    chance = random.Random(FIRST)
    return [chance.sample(OCI, 2 if number else len(OCI)) for number in range(count)]


@pytest.mark.parametrize("examples", _groups(), ids=" ".join)
def test_examples_go_up_and_down_side_by_side(examples: Sequence[str], tmp_path: Path) -> None:
    used = {USES[example] for example in examples if example in USES}
    team = Team(tmp_path, *examples, *sorted(used - set(examples)))
    try:
        for example in examples:
            team.trainyard("up", example)
        for example in examples:
            seen = team.trainyard("preview", example, "--expect-no-changes", "--diff")
            assert "unchanged" in seen
            assert "from $PATH" not in seen, "the engine warns of a plugin on PATH"
        # Stacks that others use are removed last.
        leaving = sorted({*examples, *used}, key=lambda stack: stack in used)
        for number, stack in enumerate(leaving, 1):
            # `up` does not wait for runs until `accepted`: on a busy machine they may still train.
            words = team.trainyard("down", stack, "--delete-data", "--yes")
            left = ", ".join(sorted(leaving[number:]))
            assert (f"Still up: {left}." if left else "Nothing is left; the local cloud is stopped.") in words
        assert team.in_cloud() == []
        assert not [path for stack in leaving for path in (team.home / "pulumi" / "state").rglob(f"{stack}.json")]
    finally:
        team.end()
