# SPDX-License-Identifier: Apache-2.0

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tables import table
from components.oci.iam import (
    StatementError,
    by_resource_type,
    find_operation,
    permissions_of_grant,
    smallest_grant_for,
    type_of,
)
from components.oci.iam.permissions import (
    is_documented,
    known_operations,
    known_words,
    resource_families,
    resource_types,
    verb_covers,
)
from components.oci.iam.printing import grant_text
from components.oci.iam.statement import VERBS, PermissionGrant, VerbGrant


def test_each_permission_belongs_to_one_type() -> None:
    owners: dict[str, list[str]] = {}
    for name, kind in resource_types().items():
        for permission in kind.covers["manage"]:
            owners.setdefault(permission, []).append(name)
    assert {permission: names for permission, names in owners.items() if len(names) > 1} == {}


def test_verbs_are_cumulative() -> None:
    for kind in resource_types().values():
        covered = [kind.covers[verb] for verb in VERBS]
        assert all(less <= more for less, more in pairwise(covered)), kind.name
        assert kind.documented <= kind.covers["manage"], kind.name


@pytest.mark.parametrize("name", known_operations())
def test_each_operation_needs_known_permissions(name: str) -> None:
    needs = find_operation(name)
    every = needs.permissions.union(*needs.conditional.values())
    assert {permission for permission in every if type_of(permission) is None} == set()
    assert needs.source


def test_documented_operations_need_documented_permissions() -> None:
    sure = [needs for needs in known_operations().values() if needs.trust == "documented"]
    doubtful = {needs.name: {p for p in needs.permissions if not is_documented(p)} for needs in sure}
    assert {name for name, names in doubtful.items() if names} == set()


def test_circumstances_belong_to_operations() -> None:
    assert set(table("operations")["also"]) <= set(known_operations())


# Spot checks against Oracle's tables, where pattern and memory mislead.
@pytest.mark.parametrize(
    ("verb", "kind", "permission", "covered"),
    [
        ("use", "objects", "OBJECT_CREATE", False),
        ("manage", "objects", "OBJECT_CREATE", True),
        ("use", "subnets", "SUBNET_ATTACH", True),
        ("inspect", "subnets", "SUBNET_READ", True),
        ("use", "repos", "REPOSITORY_UPDATE", False),
        ("use", "log-content", "LOG_CONTENT_PUSH", True),
        ("use", "log-groups", "LOG_GROUP_CREATE", False),
        ("use", "virtual-network-family", "VNIC_CREATE", True),
        ("use", "virtual-network-family", "SECURITY_LIST_UPDATE", False),
        ("use", "data-science-family", "DATA_SCIENCE_JOB_RUN_UPDATE", True),
        ("use", "policies", "POLICY_UPDATE", False),
        ("read", "all-resources", "METRIC_READ", True),
        ("manage", "drgs", "DRG_ATTACH", False),
    ],
)
def test_what_verbs_cover(verb: str, kind: str, permission: str, covered: bool) -> None:
    assert (permission in verb_covers(verb, kind)) is covered


def test_a_grant_by_verb_or_by_list_has_its_permissions() -> None:
    assert permissions_of_grant(VerbGrant("read", "buckets")) == {"BUCKET_INSPECT", "BUCKET_READ"}
    assert permissions_of_grant(PermissionGrant(("BUCKET_READ",))) == {"BUCKET_READ"}


def test_permissions_sort_by_type() -> None:
    assert by_resource_type(find_operation("DeleteSecurityList").permissions) == {
        "security-lists": {"SECURITY_LIST_DELETE"},
        "vcns": {"VCN_DETACH"},
    }
    with pytest.raises(StatementError, match="no resource type has the permission `X_READ`"):
        by_resource_type(["X_READ"])


def test_families_name_known_words() -> None:
    assert {member for members in resource_families().values() for member in members} <= known_words()


def test_an_unknown_operation_gets_the_nearest() -> None:
    with pytest.raises(StatementError, match="did you mean `CreateBucket`"):
        find_operation("CreateBuckt")


@pytest.mark.parametrize(
    ("kind", "needed", "grant", "trust"),
    [
        ("buckets", "BUCKET_INSPECT", "inspect buckets", "documented"),
        ("buckets", "BUCKET_INSPECT BUCKET_READ", "read buckets", "documented"),
        ("buckets", "BUCKET_READ", "{BUCKET_READ}", "documented"),
        ("subnets", "SUBNET_READ", "inspect subnets", "documented"),
        ("repos", "REPOSITORY_READ REPOSITORY_UPDATE", "{REPOSITORY_READ, REPOSITORY_UPDATE}", "documented"),
        ("data-science-jobs", "DATA_SCIENCE_JOB_READ", "{DATA_SCIENCE_JOB_READ}", "documented"),
        ("data-science-jobs", "DATA_SCIENCE_JOB_INSPECT", "inspect data-science-jobs", "mixed"),
        ("data-science-jobs", "DATA_SCIENCE_JOB_CREATE", "manage data-science-jobs", "inferred"),
        ("data-science-jobs", "DATA_SCIENCE_JOB_READ DATA_SCIENCE_JOB_CREATE", "manage data-science-jobs", "mixed"),
        ("object-family", "BUCKET_READ OBJECT_READ", "{BUCKET_READ, OBJECT_READ}", "documented"),
    ],
)
def test_smallest(kind: str, needed: str, grant: str, trust: str) -> None:
    found = smallest_grant_for(kind, frozenset(needed.split()))
    assert (grant_text(found), found.trust) == (grant, trust)


@pytest.mark.parametrize(
    ("kind", "needed", "message"),
    [
        ("bucket", "BUCKET_READ", "did you mean `buckets`"),
        ("buckets", "OBJECT_READ", "no verb on `buckets` grants OBJECT_READ"),
        ("buckets", "", "nothing is needed"),
        ("hsm-cluster", "HSM_CLUSTER_READ", "not in the catalog"),
    ],
)
def test_refuses_what_cannot_be_granted(kind: str, needed: str, message: str) -> None:
    with pytest.raises(StatementError, match=message):
        smallest_grant_for(kind, frozenset(needed.split()))


@given(st.data())
def test_covers_what_is_needed_and_never_lists_an_inferred_name(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(resource_types())))
    needed = data.draw(st.frozensets(st.sampled_from(sorted(resource_types()[kind].covers["manage"])), min_size=1))
    grant = smallest_grant_for(kind, needed)
    assert needed <= permissions_of_grant(grant)
    if isinstance(grant, PermissionGrant):
        assert permissions_of_grant(grant) == needed
        assert all(map(is_documented, needed))
    elif grant.verb != "inspect":
        below = VERBS[VERBS.index(grant.verb) - 1]
        assert not needed <= verb_covers(below, kind)
    assert isinstance(grant, VerbGrant | PermissionGrant)
