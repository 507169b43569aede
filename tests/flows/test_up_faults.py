# SPDX-License-Identifier: Apache-2.0
"""`up` with injected faults: it succeeds, or reports the reason, and the next `up` succeeds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import oci
import pytest

from localcloud import admin
from tests.support.kill_up import compared
from tests.support.local_team import Team, summary

pytestmark = pytest.mark.engine

EVERYTHING = "*"
# Rates and seeds of faults that happen together.
BAD_DAY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("latency", {"seconds": 0.05}),
    ("status", {"status": 429, "rate": 0.1, "seed": 1, "operations": EVERYTHING}),
    ("status", {"status": 503, "rate": 0.1, "seed": 2, "operations": EVERYTHING}),
    ("drop", {"rate": 0.1, "seed": 3, "operations": EVERYTHING}),
    ("lost-answer", {"rate": 0.5, "seed": 4, "operations": "Create*"}),
)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    one = Team(tmp_path)
    yield one
    one.end()


def test_up_succeeds_despite_faults_and_makes_nothing_twice(team: Team) -> None:
    for kind, settings in BAD_DAY:
        admin.add_fault(team.cloud, kind, **settings)
    output = team.trainyard("up", "local")
    struck = {fault["kind"]: fault["done"] for fault in admin.list_faults(team.cloud)}
    assert set(struck) == {kind for kind, _ in BAD_DAY}
    assert min(struck.values()) > 0, struck
    assert re.search(r"Create \S+: .*; trying again for up to \d+ s", output)
    _assert_clean(output)
    _assert_whole(team, runs=["SUCCEEDED"])
    admin.clear_faults(team.cloud)
    before = team.in_cloud(), compared(team)

    assert summary(team.trainyard("up", "local")) == {"unchanged": 21}
    assert (team.in_cloud(), compared(team)) == before


@pytest.mark.torture
def test_up_reports_a_limit_or_missing_capacity_and_the_next_up_continues(team: Team) -> None:
    admin.add_fault(team.cloud, "limit", limit="subnet-count", value=0)
    said = _diagnostics(_failed_up(team), "oci:Core:Subnet (subnet)")
    assert "Create subnet: 400 LimitExceeded" in said[0]
    assert "subnet-count. 0 of 0 are in use" in said[0]
    assert "Ask for a higher service limit" in said[1]

    admin.clear_faults(team.cloud)
    admin.add_fault(team.cloud, "no-capacity", shape="VM.Standard.E4.*")
    said = _diagnostics(_failed_up(team), "trainyard:index:Run (line/base)")
    assert "Out of host capacity for 1 node(s) of shape VM.Standard.E4.Flex" in said[0]
    assert "Try later, or use another shape" in said[1]

    admin.clear_faults(team.cloud)
    assert summary(team.trainyard("up", "local")) == {"created": 1, "unchanged": 20}
    _assert_whole(team, runs=["SUCCEEDED"])


@pytest.mark.torture
def test_up_waits_visibly_for_access_that_takes_effect_late(team: Team) -> None:
    """The deployer is an administrator. The service cannot use the subnet until the policy takes effect."""
    admin.add_fault(team.cloud, "access", seconds=8)
    output = team.trainyard("up", "local")
    assert summary(output) == {"created": 21}
    assert "a policy must let service datascience use virtual-network-family" in output
    assert re.search(r"new access may not be in force yet, trying again for up to \d+ s", output)
    client = oci.data_science.DataScienceClient(_deployer(team), service_endpoint=team.cloud.endpoint)
    states = sorted(run.lifecycle_state for run in client.list_job_runs(team.cloud.compartment).data)
    assert states[-1] == "SUCCEEDED"
    assert set(states[:-1]) == {"FAILED"}, "what began nowhere stays as history"
    assert summary(team.trainyard("up", "local")) == {"unchanged": 21}


@pytest.mark.torture
def test_missing_access_is_reported_and_the_next_up_starts_the_run(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINYARD_ACCESS_MINUTES", "0")
    admin.add_fault(team.cloud, "access", seconds=3600)
    said = _diagnostics(_failed_up(team), "trainyard:index:Run (line/base)", "The run ")
    assert "a policy must let service datascience use virtual-network-family" in said[0]
    assert "new policies a minute" in said[1]
    assert "the next `up` starts it" in said[1]

    admin.clear_faults(team.cloud)
    _come_into_force(team)
    assert summary(team.trainyard("up", "local")) == {"replaced": 1, "unchanged": 20}
    _assert_whole(team, runs=["FAILED", "SUCCEEDED"])
    assert summary(team.trainyard("up", "local")) == {"unchanged": 21}


def _failed_up(team: Team) -> str:
    done = team.attempt("up", "local")
    output = done.stdout + done.stderr
    assert done.returncode != 0, output
    _assert_clean(output)
    return output


def _come_into_force(team: Team) -> None:
    """Ends the delay: policies and groups are written again without the fault, so that they take effect now."""
    client = oci.identity.IdentityClient(_deployer(team), service_endpoint=team.cloud.endpoint)
    tenancy = _deployer(team)["tenancy"]
    for group in client.list_dynamic_groups(tenancy).data:
        client.update_dynamic_group(
            group.id, oci.identity.models.UpdateDynamicGroupDetails(description=group.description)
        )
    for place in (tenancy, team.cloud.compartment):
        for policy in client.list_policies(place).data:
            client.update_policy(policy.id, oci.identity.models.UpdatePolicyDetails(description=policy.description))


def _deployer(team: Team) -> dict[str, Any]:
    return dict(oci.config.from_file(str(team.cloud.config_file), "deployer"))


def _assert_clean(output: str) -> None:
    assert "Traceback" not in output, output
    assert "bug in the provider" not in output, output


def _diagnostics(output: str, resource: str, start: str = "error:") -> list[str]:
    """The lines of a resource under `Diagnostics:`, from the first that has `start`."""
    block = output.partition("Diagnostics:")[2].partition(f"{resource}:\n")[2].partition("\n\n")[0]
    lines = block.splitlines()
    first = next((number for number, line in enumerate(lines) if start in line), None)
    assert first is not None, output
    return lines[first:]


def _assert_whole(team: Team, runs: list[str]) -> None:
    """Every resource exists once, in the cloud and in the state. Failed runs stay as history."""
    kinds = Counter(kind for kind, _ in team.in_cloud() if kind != "fault")
    once = {"bucket", "container-image", "container-repository", "dynamic-group", "job", "log", "log-group", "policy"}
    once |= {"project", "service-gateway", "subnet", "vcn"}
    # A VCN has a default route table, security list and DHCP options.
    of_a_network = {"dhcp-options": 1, "route-table": 2, "security-list": 2}
    assert kinds == {**dict.fromkeys(once, 1), **of_a_network, "job-run": len(runs)}
    made = [one["id"] for one in team.resources() if one["custom"] and str(one.get("id")).startswith("ocid1.")]
    assert len(made) == len(set(made))
    client = oci.data_science.DataScienceClient(_deployer(team), service_endpoint=team.cloud.endpoint)
    assert sorted(run.lifecycle_state for run in client.list_job_runs(team.cloud.compartment).data) == runs


# The same rates. `preview` and `down` mostly make reads and deletions.
BUSY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("status", {"status": 429, "rate": 0.2, "seed": 5, "operations": EVERYTHING}),
    ("status", {"status": 503, "rate": 0.1, "seed": 6, "operations": EVERYTHING}),
    ("drop", {"rate": 0.1, "seed": 7, "operations": EVERYTHING}),
    ("lost-answer", {"rate": 0.5, "seed": 8, "operations": "Delete*"}),
)


@pytest.mark.torture
def test_preview_and_down_succeed_despite_faults(team: Team) -> None:
    team.trainyard("up", "local")
    for kind, settings in BUSY:
        admin.add_fault(team.cloud, kind, **settings)
    _assert_clean(team.trainyard("preview", "local", "--expect-no-changes"))
    output = team.trainyard("down", "local")
    _assert_clean(output)
    assert "Nothing is left; the local cloud is stopped." in output
    assert team.in_cloud() == [] or {kind for kind, _ in team.in_cloud()} == {"fault"}


@pytest.mark.torture
def test_an_interrupted_down_names_the_reason_and_the_next_one_continues(team: Team) -> None:
    team.trainyard("up", "local")
    admin.add_fault(team.cloud, "status", status=403, code="Forbidden", operations="DeleteSubnet")
    done = team.attempt("down", "local")
    assert done.returncode != 0
    _assert_clean(done.stdout + done.stderr)
    said = _diagnostics(done.stdout, "oci:Core:Subnet (subnet)")
    assert "Delete subnet: 403 Forbidden" in said[0]
    admin.clear_faults(team.cloud)
    assert "Nothing is left; the local cloud is stopped." in team.trainyard("down", "local")
    assert team.in_cloud() == []


@pytest.mark.torture
def test_stand_ins_are_made_once_despite_faults_and_removed_with_the_last_stack(tmp_path: Path) -> None:
    team = Team(tmp_path, "oci-existing")
    try:
        for kind, settings in (
            ("lost-answer", {"rate": 0.5, "seed": 9, "operations": "Create*"}),
            ("status", {"status": 503, "rate": 0.2, "seed": 10, "operations": EVERYTHING}),
        ):
            admin.add_fault(team.cloud, kind, **settings)
        said = team.trainyard("preview", "oci-existing")
        _assert_clean(said)
        assert re.search(r"Make what stands in for .*; trying again for up to \d+ s", said)
        admin.clear_faults(team.cloud)
        before = team.in_cloud()
        _assert_clean(team.trainyard("preview", "oci-existing"))
        assert team.in_cloud() == before, "a second preview makes no second stand-in"
        assert "Nothing is left; the local cloud is stopped." in team.trainyard("down", "oci-existing", "--yes")
        assert team.in_cloud() == []
    finally:
        team.end()
