# SPDX-License-Identifier: Apache-2.0
"""`each:` by its commands: `plan`, then `up` on the local cloud, then one more value."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.local_team import summary
from tests.support.try_world import jobs, try_team

pytestmark = pytest.mark.engine


@pytest.mark.torture
def test_each_combination_is_a_run_and_a_further_value_changes_none(tmp_path: Path) -> None:
    line = jobs()["line"]
    line["runs"] = {"base": {"until": "finished"}}
    with try_team(tmp_path, {"line": line}) as team:
        before = summary(team.trainyard("up", "local"))["created"]

        args = ["--lr", "${each.lr}", "--bs", "${each.bs}"]
        sweep = {"each": {"lr": [0.1, 0.01], "bs": [32]}, "args": args, "until": "finished"}
        line["runs"] = {**line["runs"], "sweep": sweep}
        team.configure("jobs", {"line": line})
        checked = team.run("check", str(team.file))
        assert checked.returncode == 0, checked.stdout
        assert "makes 2 runs that start together: 2 nodes of VM.Standard.E4.Flex at once" in checked.stdout
        assert "oci limits value list" in checked.stdout
        planned = team.run("plan", str(team.file)).stdout
        assert "Run line/sweep-bs-32-lr-0.01: demo-local-line-sweep-bs-32-lr-0.01" in planned
        assert "3 nodes, while all of its runs train" in planned
        up = team.trainyard("up", "local")
        assert summary(up) == {"created": 2, "unchanged": before}, "what was there before moves not"
        for rate in ("0.1", "0.01"):
            assert f"run      line/sweep-bs-32-lr-{rate}: SUCCEEDED" in up
            ((name, text),) = team.outputs(f"line/sweep-bs-32-lr-{rate}").items()
            assert name.endswith("/output/given.txt")
            assert f"['--epochs', '5', '--lr', '{rate}', '--bs', '32']" in text
            assert f"place line/sweep-bs-32-lr-{rate}" in text

        sweep["each"] = {"bs": [64, 32], "lr": [0.01, 0.1]}
        team.configure("jobs", {"line": line})
        more = team.trainyard("preview", "local")
        assert "+ 2 to create" in more
        assert summary(more)["unchanged"] == before + 2
        tried = team.try_("line/sweep-bs-32-lr-0.1", "-f", "--", "--lr", "7")
        assert "['--epochs', '5', '--lr', '7'] colour red" in tried.stdout, tried.stderr
