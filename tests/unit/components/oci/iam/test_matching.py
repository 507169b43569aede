# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam import StatementError, condition_text
from components.oci.iam.matching import MatchableResource, matches_rule, parse_rule

RUN = MatchableResource("ocid1.datasciencejobrun.oc1..r", "ocid1.compartment.oc1..c", {"Ops.Team": "vision"})
NOTEBOOK = MatchableResource("ocid1.datasciencenotebooksession.oc1..n", "ocid1.compartment.oc1..d")
INSTANCE = MatchableResource("ocid1.instance.oc1..i", "ocid1.compartment.oc1..c")

RULES = [
    ("all {resource.type='datasciencejobrun', resource.compartment.id='ocid1.compartment.oc1..c'}", {"run"}),
    ("all { resource.type = 'DataScienceJobRun' }", {"run"}),
    (
        "Any {all {resource.type='datasciencejobrun'}, all {resource.type='datasciencenotebooksession'}}",
        {"run", "book"},
    ),
    ("resource.type != 'datasciencejobrun'", {"book", "instance"}),
    ("resource.id = 'ocid1.datasciencenotebooksession.oc1..n'", {"book"}),
    ("ALL {resource.compartment.id = 'ocid1.compartment.oc1..c', resource.type != 'instance'}", {"run"}),
    ("instance.compartment.id = 'ocid1.compartment.oc1..c'", {"instance"}),
    ("instance.id != 'ocid1.instance.oc1..x'", {"instance"}),
    ("tag.ops.team.value = 'vision'", {"run"}),
    ("tag.ops.team.value", {"run"}),
    ("any {tag.ops.team.value, instance.id = 'ocid1.instance.oc1..i'}", {"run", "instance"}),
    ("tag.ops.team.value != 'vision'", set()),
]

REFUSED = [
    ("", 1, "found the end"),
    ("resource.typ = 'x'", 1, "did you mean `resource.type`?"),
    ("target.bucket.name = 'x'", 1, "expected `all`, `any` or one of"),
    ("resource.type = datasciencejobrun", 17, "write 'datasciencejobrun'"),
    ("resource.type = /datascience*/", 17, "no patterns"),
    ("resource.type in ('x')", 15, "takes `=` `!=`"),
    ("all {resource.type = 'x'", 25, "expected `,` or `}`"),
    ("all {resource.type='a'} all {resource.type='b'}", 25, "put several together as any"),
    ("resource.type = 'a', resource.id = 'b'", 20, "expected the end, found `,`"),
    ("tag.ops.team = 'x'", 1, "tag.<namespace>.<key>.value"),
]


@pytest.mark.parametrize(("text", "members"), RULES)
def test_a_matching_rule_selects_its_members(text: str, members: set[str]) -> None:
    rule = parse_rule(text)
    found = {
        name for name, one in (("run", RUN), ("book", NOTEBOOK), ("instance", INSTANCE)) if matches_rule(rule, one)
    }
    assert found == members
    assert parse_rule(condition_text(rule)) == rule


@pytest.mark.parametrize(("text", "column", "message"), REFUSED)
def test_refuses_with_column_and_remedy(text: str, column: int, message: str) -> None:
    with pytest.raises(StatementError) as refusal:
        parse_rule(text)
    assert (refusal.value.column, message in str(refusal.value)) == (column, True)


def test_a_thing_without_an_ocid_has_no_type() -> None:
    assert not matches_rule(parse_rule("resource.type = 'x'"), MatchableResource("x", ""))


def _printed_back(text: str) -> bool:
    try:
        rule = parse_rule(text)
    except StatementError:
        return True
    return parse_rule(condition_text(rule)) == rule


@given(st.text(max_size=60), st.sampled_from(["", "all {", "any {resource.id = '", "tag.a.b.value = '"]))
def test_any_text_is_read_or_refused(text: str, start: str) -> None:
    assert _printed_back(start + text)
