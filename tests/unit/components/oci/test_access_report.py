# SPDX-License-Identifier: Apache-2.0
"""The report of `trainyard access`."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from components.oci import iam
from components.oci.access_report import MARKS, VERBS, OciAccessReport, build_oci_access_report
from components.oci.iam.permissions import is_documented
from components.oci.iam.statement import VERBS as EVERY_VERB
from components.oci.plan import OciPlan
from components.oci.stack import OciAccess, OciLogs, OciStack, Users
from components.oci.statements import STATEMENTS_PER_POLICY, lines_by_policy, policy_lines
from schemas.model import AccessMode, Bucket, Input, Uses
from tests.support.oci_plans import oci_plan
from tests.support.samples import job
from tests.support.samples import plan as plan_of

COMPARTMENT = "ocid1.compartment.oc1..vision"
USERS = {"group": Users(group="scientists"), "notebooks": Users(notebooks=True), "none": Users()}


def plan(mode: AccessMode = "least-privilege", users: Users = USERS["group"], uses: Uses | None = None) -> OciPlan:
    return oci_plan(
        OciStack(
            name="vision-dev",
            team="vision",
            environment="dev",
            region="us-ashburn-1",
            compartment=COMPARTMENT,
            tenancy="ocid1.tenancy.oc1..company",
            access=OciAccess(mode=mode, users=users),
            bucket=Bucket(name="vision-dt"),
            logs=OciLogs(),
            uses=uses,
        )
    )


def made(**how: object) -> OciAccessReport:
    return build_oci_access_report(plan(**how), "platform-team")  # type: ignore[arg-type]  # each keyword is one of plan()'s


@pytest.mark.parametrize("mode", get_args(AccessMode))
@pytest.mark.parametrize("users", USERS.values(), ids=USERS.keys())
def test_every_statement_is_told_in_words_and_by_policy(mode: AccessMode, users: Users) -> None:
    of = plan(mode, users)
    found = build_oci_access_report(of, "platform-team")
    texts = [line.text for lines in lines_by_policy(of).values() for line in lines]
    assert [right.statement for right in found.rights] == texts
    told = found.text()
    for right in (*found.rights, *found.deployer.rights):
        assert right.statement in told
    for right in found.rights:
        assert f"{right.who} may" in told
        assert f"  - {right.may}{MARKS[right.trust]}" in told
        assert all(why in told for why in right.why)


def test_words_name_the_place_and_the_narrowing() -> None:
    found = made()
    runs = [right.may for right in found.rights if right.who == "dynamic-group vision-dev-runs"]
    assert "list and read buckets in the compartment, only where target.bucket.name = 'vision-dt'" in runs
    everything = [right.may for right in made(mode="proof-of-concept").rights]
    assert "do everything with all resources in the whole tenancy" in everything


def test_what_is_only_inferred_is_marked_and_named() -> None:
    found = made()
    told = found.text()
    unsure = [right for right in (*found.rights, *found.deployer.rights) if right.trust != "documented"]
    assert unsure
    for right in unsure:
        assert not any(is_documented(name) for name in right.inferred)
        line = next(line for line in told.splitlines() if line.startswith(f"  {right.grant}  "))
        assert "inferred" in line
    # Documented grants are not marked as inferred.
    assert all(right.inferred == () for right in found.rights if right.trust == "documented")


def test_policies_say_where_they_are_attached() -> None:
    assert [policy.attached_to for policy in made().policies] == [f"compartment {COMPARTMENT}"]
    [policy] = made(mode="proof-of-concept").policies
    assert (policy.name, policy.attached_to) == ("vision-dev-access-tenancy", "tenancy ocid1.tenancy.oc1..company")


def test_dynamic_groups_with_their_rules() -> None:
    runs, notebooks = made(users=USERS["notebooks"]).dynamic_groups
    assert runs.name == "vision-dev-runs"
    assert runs.matching_rule is not None
    assert "datasciencejobrun" in runs.matching_rule
    assert notebooks.matching_rule is not None
    assert "datasciencenotebooksession" in notebooks.matching_rule


def test_access_of_another_stack_is_not_this_ones() -> None:
    found = made(uses=Uses("org/trainyard/platform", ("access",)))
    assert found.policies == ()
    assert found.granted_by == "org/trainyard/platform"
    assert [group.matching_rule for group in found.dynamic_groups] == [None]
    assert "granted by the stack org/trainyard/platform" in found.text()


def test_the_deployer_is_told_for_the_group_named() -> None:
    assert {right.who for right in made().deployer.rights} == {"group platform-team"}


def test_every_verb_and_trust_has_its_words() -> None:
    assert set(VERBS) == set(EVERY_VERB)
    assert set(MARKS) == set(get_args(iam.Trust))


def test_who_grants_access_elsewhere_is_told_what_to_grant() -> None:
    mine = plan()
    theirs = replace(mine, access=replace(mine.access, create=False, make_runs_group=False, runs_group="company-runs"))
    found = build_oci_access_report(theirs, "platform-team")
    assert (found.made, found.policies, found.granted_by) == (False, (), None)
    would = replace(theirs, access=replace(theirs.access, create=True))
    assert [right.statement for right in found.rights] == [line.text for line in policy_lines(would)]
    told = found.text()
    assert "  This stack grants nothing: it is granted outside. What has to be granted:" in told
    assert f"Statements that would grant it, attached to compartment {COMPARTMENT}" in told
    assert "  company-runs (runs): not made by this stack, its rule has to be" in told


def test_the_group_of_a_stack_that_access_is_taken_from_goes_by_no_name_of_ours() -> None:
    [runs] = made(uses=Uses("org/trainyard/platform", ("access",))).dynamic_groups
    assert (runs.name, runs.made) == ("that of org/trainyard/platform", False)


@pytest.mark.parametrize(("buckets", "too_many"), [(200, False), (300, True)])
def test_more_statements_than_oci_takes_are_said(buckets: int, too_many: bool) -> None:
    inputs = tuple(Input(f"/data/{number}", f"bucket-{number}") for number in range(buckets))
    found = build_oci_access_report(plan_of(jobs={"train": job(inputs=inputs)}), "platform-team")
    assert all(len(policy.rights) <= STATEMENTS_PER_POLICY for policy in found.policies)
    assert len({policy.name for policy in found.policies}) == len(found.policies) > buckets // 50
    assert ("OCI takes no more than 500 statements" in found.text()) == too_many
