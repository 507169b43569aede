# SPDX-License-Identifier: Apache-2.0
"""Hypothesis strategies for statements and tenancies."""

from hypothesis import strategies as st

from components.oci.iam.evaluate import DAY, MONTH, STAMP, TIME_OF_DAY, WEEKDAY
from components.oci.iam.permissions import known_words, resource_families, resource_types
from components.oci.iam.statement import (
    VERBS,
    AllOf,
    AnyOf,
    Comparison,
    CompartmentId,
    CompartmentName,
    Condition,
    Identified,
    Named,
    Pattern,
    PermissionGrant,
    Statement,
    Subject,
    Tenancy,
    Text,
    Variable,
    VerbGrant,
)

_printable = st.characters(blacklist_categories=("C", "Z"), blacklist_characters="'/:")
names = st.one_of(
    st.sampled_from(
        ["id", "to", "in", "where", "tenancy", "any-user", "a b", "a.b", "team_1", "Ünï côde", "all", "{x}"]
    ),
    st.text(_printable, min_size=1, max_size=8),
)
ocids = st.from_regex(r"\Aocid1\.[a-z]{1,8}\.oc1\.\.[a-z0-9]{1,6}\Z")
permissions = st.sampled_from(sorted(p for kind in resource_types().values() for p in kind.covers["manage"]))
words = st.sampled_from(sorted(known_words()))

_plain_variables = st.sampled_from([
    "request.user.id", "request.user.mfaTotpVerified", "request.groups.id", "request.operation",
    "request.principal.type", "request.networkSource.name", "target.compartment.name", "target.bucket.name",
    "target.resource.tag.ops.team",
])  # fmt: skip
_texts = st.builds(Text, st.text(st.characters(blacklist_categories=("C", "Z"), blacklist_characters="'"), max_size=8))
_patterns = st.builds(
    Pattern, st.one_of(st.sampled_from(["*", "a*", "*a", "*a*", "a/b*", "a b*"]), st.from_regex(r"\A[a-z*]{1,6}\Z"))
)
_values = st.one_of(_texts, _patterns, st.builds(Variable, _plain_variables))
_dates = st.datetimes().map(lambda moment: Text(moment.replace(microsecond=0).isoformat() + "Z"))
_times = st.times().map(lambda moment: Text(moment.replace(microsecond=0).isoformat() + "Z"))
_calendar = st.one_of(
    st.tuples(st.just(MONTH), st.integers(1, 12).map(str)),
    st.tuples(st.just(DAY), st.integers(1, 31).map(str)),
    st.tuples(st.just(WEEKDAY), st.sampled_from(["monday", "Friday", "SUNDAY"])),
)
comparisons = st.one_of(
    st.builds(Comparison, _plain_variables, st.sampled_from(["=", "!="]), st.tuples(_values)),
    st.builds(Comparison, st.just(STAMP), st.sampled_from(["before", "after"]), st.tuples(_dates)),
    st.builds(Comparison, st.just(TIME_OF_DAY), st.just("between"), st.tuples(_times, _times)),
    _calendar.map(lambda row: Comparison(row[0], "in", (Text(row[1]), Text(row[1])))),
    _calendar.map(lambda row: Comparison(row[0], "!=", (Text(row[1]),))),
)


def _several(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[tuple[Condition, ...]]:
    return st.lists(parts, min_size=1, max_size=3).map(tuple)


conditions: st.SearchStrategy[Condition] = st.recursive(
    comparisons,
    lambda parts: st.one_of(st.builds(AllOf, _several(parts)), st.builds(AnyOf, _several(parts))),
    max_leaves=5,
)

_members = st.one_of(st.builds(Named, names, st.one_of(st.none(), names)), st.builds(Identified, ocids))
subjects = st.one_of(
    st.sampled_from([Subject("any-user"), Subject("any-group")]),
    st.builds(
        Subject, st.sampled_from(["group", "dynamic-group"]), st.lists(_members, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(Subject, st.just("service"), st.lists(st.builds(Named, names), min_size=1, max_size=2).map(tuple)),
)
statement_grants = st.one_of(
    st.builds(VerbGrant, st.sampled_from(VERBS), words),
    st.builds(PermissionGrant, st.lists(permissions, min_size=1, max_size=4).map(tuple)),
)
locations = st.one_of(
    st.just(Tenancy()),
    st.builds(CompartmentId, ocids),
    st.builds(CompartmentName, st.lists(names, min_size=1, max_size=3).map(tuple)),
)
statements = st.builds(Statement, subjects, statement_grants, locations, st.one_of(st.none(), conditions))

# Statements that meet the tenancy of tenancy.py often enough to grant something.
families_and_types = st.sampled_from(sorted({*resource_families(), *resource_types()}))
