# SPDX-License-Identifier: Apache-2.0
"""Every example for OCI goes up and down on the local cloud, with an empty preview between, and nothing is left."""

import os
import random
from pathlib import Path

import pytest

from tests.examples import EXAMPLES
from tests.flows.local_team import Team

pytestmark = pytest.mark.engine

OCI = [name for name in EXAMPLES if name.startswith("oci-")]
# Those whose way up differs: another stack comes first, stand-ins for what exists.
ALWAYS = ["oci-existing", "oci-existing-vcn", "oci-team"]
# A different few each day, the same for everybody: all of them take minutes.
SEED = os.environ.get("TRAINYARD_SEED", "1")
ASKED = OCI if os.environ.get("TRAINYARD_TORTURE") else [*ALWAYS, *random.Random(SEED).sample(OCI, 2)]
USES = {"oci-team": "oci-platform"}


@pytest.mark.parametrize("example", sorted(set(ASKED)))
def test_an_example_goes_up_and_down(example: str, tmp_path: Path) -> None:
    stacks = [example, *filter(None, [USES.get(example)])]
    team = Team(tmp_path, *stacks)
    try:
        team.trainyard("up", example)
        seen = team.trainyard("preview", example, "--expect-no-changes", "--diff")
        assert "unchanged" in seen
        assert "from $PATH" not in seen, "the engine warns of a plugin on PATH"
        *others, last = [team.trainyard("down", stack, "--delete-data") for stack in stacks]
        assert all(f"Still up: {stacks[-1]}." in other for other in others)
        assert "Nothing is left; the local cloud is stopped." in last
        assert team.in_cloud() == []
        assert not [path for stack in stacks for path in (team.home / "pulumi" / "state").rglob(f"{stack}.json")]
    finally:
        team.end()
