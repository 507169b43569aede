# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam import StatementError, grants, smallest
from components.oci.iam.permissions import is_documented, resource_types, verb_covers
from components.oci.iam.printing import grant_text
from components.oci.iam.statement import VERBS, PermissionGrant, VerbGrant


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
def test_the_smallest_grant_that_covers_the_permissions_is_chosen(
    kind: str, needed: str, grant: str, trust: str
) -> None:
    found = smallest(kind, frozenset(needed.split()))
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
        smallest(kind, frozenset(needed.split()))


@given(st.data())
def test_covers_what_is_needed_and_never_lists_an_inferred_name(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(resource_types())))
    needed = data.draw(st.frozensets(st.sampled_from(sorted(resource_types()[kind].covers["manage"])), min_size=1))
    grant = smallest(kind, needed)
    assert needed <= grants(grant)
    if isinstance(grant, PermissionGrant):
        assert grants(grant) == needed
        assert all(map(is_documented, needed))
    elif grant.verb != "inspect":
        below = VERBS[VERBS.index(grant.verb) - 1]
        assert not needed <= verb_covers(below, kind)
    assert isinstance(grant, VerbGrant | PermissionGrant)
