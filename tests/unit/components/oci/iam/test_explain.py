# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam import find_operation, to_text
from components.oci.iam.explain import explain_refusal
from components.oci.iam.judge import AttachedPolicy, Principal, Target, compile_policies, judge_request
from components.oci.iam.parse import parse_statement
from components.oci.iam.permissions import known_operations
from tests.unit.components.oci.iam.tenancy import (
    ALICE,
    DATA_SCIENCE,
    DEEP,
    LONER,
    ROOT,
    RUN,
    TEAM,
    TREE,
    bucket,
    policies,
)


@pytest.mark.parametrize(
    ("principal", "target", "remedy"),
    [
        (ALICE, bucket(), f"Allow group scientists to {{BUCKET_READ}} in compartment id {TEAM} where "
         "target.bucket.name = 'data'"),
        (ALICE, Target(ROOT), "Allow group scientists to {BUCKET_READ} in tenancy"),
        (RUN, Target(DEEP), f"Allow dynamic-group runs to {{BUCKET_READ}} in compartment id {DEEP}"),
        (DATA_SCIENCE, Target(ROOT), "Allow service datascience to {BUCKET_READ} in tenancy"),
        (LONER, Target(ROOT),
         f"Allow any-user to {{BUCKET_READ}} in tenancy where request.principal.id = '{LONER.ocid}'"),
        (Principal("instance"), Target(ROOT),
         "Allow any-user to {BUCKET_READ} in tenancy where request.principal.type = 'instance'"),
    ],
)  # fmt: skip
def test_names_the_statement_that_would_grant(principal: Principal, target: Target, remedy: str) -> None:
    refusal = explain_refusal(policies(), principal, ("BUCKET_READ",), target)
    assert [to_text(statement) for statement in refusal.remedies] == [remedy]
    assert refusal.text().splitlines()[-1] == f"would grant it: {remedy}"


@pytest.mark.parametrize("name", ["a\nb", " a", "\x00", "", "'"])
@pytest.mark.parametrize("place", [ROOT, "nowhere", "a\x00b", ""])
def test_a_target_that_no_statement_can_name_is_refused_all_the_same(name: str, place: str) -> None:
    refusal = explain_refusal(policies(), ALICE, ("BUCKET_READ",), Target(place, {"target.bucket.name": name}))
    assert refusal.text().startswith("user alice lacks BUCKET_READ")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("Allow group scientists to read buckets in compartment other", "another compartment"),
        ("Allow group scientists to read buckets in tenancy where target.bucket.name = 'x'", "does not hold"),
        ("Allow group scientists to read buckets in tenancy where target.repo.name != 'x'", "no target.repo.name"),
    ],
)
def test_a_refusal_lists_statements_that_almost_apply(statement: str, why: str) -> None:
    in_force = policies(statement, "Allow group scientists to read repos in tenancy")
    refusal = explain_refusal(in_force, ALICE, ("BUCKET_READ",), bucket())
    assert [(miss.statement, why in miss.why) for miss in refusal.near] == [(parse_statement(statement), True)]
    assert f"does not apply (p): {statement}: " in refusal.text()


def test_a_refusal_names_the_user_and_the_missing_permissions() -> None:
    assert (
        explain_refusal(policies(), ALICE, ("A_READ", "B_READ"), Target(ROOT))
        .text()
        .startswith("user alice lacks A_READ, B_READ")
    )


@given(
    st.sampled_from([ALICE, LONER, RUN, DATA_SCIENCE]),
    st.sampled_from(sorted(known_operations())),
    st.sampled_from([bucket(), bucket("it's", DEEP), Target(ROOT), Target(TEAM, {"target.repo.name": "a/b"})]),
)
def test_the_remedy_heals(principal: Principal, name: str, target: Target) -> None:
    needed = find_operation(name).permissions
    missing = judge_request(policies(), principal, needed, target).missing
    remedies = explain_refusal(policies(), principal, missing, target).remedies
    healed = compile_policies([AttachedPolicy("p", ROOT, remedies)], TREE)
    assert judge_request(healed, principal, needed, target).allowed
