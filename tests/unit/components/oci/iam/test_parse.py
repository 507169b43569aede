# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam import Statement, StatementError, to_text
from components.oci.iam.parse import parse_statement
from tests.unit.components.oci.iam.strategies import statements

# Statements of Oracle's pages in their spelling, and in our canonical one.
READ = [
    (
        "Allow group A-Admins, B-Admins to manage all-resources in compartment Projects-A-and-B",
        "Allow group A-Admins, B-Admins to manage all-resources in compartment Projects-A-and-B",
    ),
    (
        "allow GROUP id ocid1.group.oc1..aaa , id 'ocid1.group.oc1..bbb' to MANAGE All-Resources in TENANCY",
        "Allow group id ocid1.group.oc1..aaa, id ocid1.group.oc1..bbb to manage all-resources in tenancy",
    ),
    (
        "Allow group 'My Domain'/'My Group' to read buckets in compartment id 'ocid1.compartment.oc1..c'",
        "Allow group 'My Domain'/'My Group' to read buckets in compartment id ocid1.compartment.oc1..c",
    ),
    (
        "Allow group Corp/Team to read buckets in compartment A : B:'C.d'",
        "Allow group 'Corp'/'Team' to read buckets in compartment A:B:'C.d'",
    ),
    ("Allow group 'Corp/Team' to read buckets in tenancy", "Allow group 'Corp'/'Team' to read buckets in tenancy"),
    ("Allow any-group\n to inspect\tusers in tenancy", "Allow any-group to inspect users in tenancy"),
    (
        "Allow service datascience, objectstorage-us-ashburn-1 to use virtual-network-family in tenancy",
        "Allow service datascience, objectstorage-us-ashburn-1 to use virtual-network-family in tenancy",
    ),
    (
        "Allow any-user to {repository_read,REPOSITORY_UPDATE} in tenancy where "
        "ALL{request.principal.type='datasciencejobrun', Any {target.repo.name=/team*/ , target.repo.name!='team/x'}}",
        "Allow any-user to {REPOSITORY_READ, REPOSITORY_UPDATE} in tenancy where all "
        "{request.principal.type = 'datasciencejobrun', "
        "any {target.repo.name = /team*/, target.repo.name != 'team/x'}}",
    ),
    (
        "Allow group x to use objects in tenancy where target.user.id = request.user.id",
        "Allow group x to use objects in tenancy where target.user.id = request.user.id",
    ),
    (
        "Allow group Contractors to manage buckets in tenancy where request.utc-timestamp before '2022-01-01T00:00Z'",
        "Allow group Contractors to manage buckets in tenancy where request.utc-timestamp before '2022-01-01T00:00Z'",
    ),
    (
        "Allow group Off to use metrics in tenancy where request.utc-timestamp.day-of-week in ('saturday','sunday')",
        "Allow group Off to use metrics in tenancy where request.utc-timestamp.day-of-week in ('saturday', 'sunday')",
    ),
    (
        "Allow group Day to use metrics in tenancy where "
        "request.utc-timestamp.time-of-day between '17:00:00Z' and '01:00:00Z'",
        "Allow group Day to use metrics in tenancy where "
        "request.utc-timestamp.time-of-day between '17:00:00Z' and '01:00:00Z'",
    ),
]

# Statements that OCI refuses, with column and message.
REFUSED = [
    ("", 1, "expected `allow`, found the end"),
    ("Alow group x to read repos in tenancy", 1, "found `Alow`; did you mean `allow`?"),
    ("Endorse group x to read repos in any-tenancy", 1, "only `Allow` statements are read here"),
    ("Allow grup x to read repos in tenancy", 7, "did you mean `group`?"),
    ("Allow group <your_group> to read repos in tenancy", 13, "<your_group> is a placeholder"),
    ('Allow group "x y" to read repos in tenancy', 13, "quotes with ' only"),
    ("Allow group 'x y to read repos in tenancy", 13, "never closed"),
    ("Allow group '' to read repos in tenancy", 13, "empty"),
    ("Allow group id x to read repos in tenancy", 16, "'x' is not an OCID"),
    ("Allow group x y to read repos in tenancy", 15, "expected `to`, found `y`"),
    ("Allow service Corp/datascience to use subnets in tenancy", 7, "services go by plain names"),
    ("Allow group x to mange repos in tenancy", 18, "found `mange`; did you mean `manage`?"),
    (
        "Allow group x to use read metrics in compartment c",
        22,
        "two verbs, `use` and `read`; keep the one that is meant",
    ),
    ("Allow group x to read repo in tenancy", 23, "`repo` is not a resource type; did you mean `repos`?"),
    ("Allow group x to read", 22, "expected a resource type, found the end"),
    ("Allow group x to {} in tenancy", 19, "expected the name of a permission, found `}`"),
    ("Allow group x to {BUCKET_READ} buckets in tenancy", 32, "takes no resource type: leave out `buckets`"),
    ("Allow group x to {BUCKET_READ buckets} in tenancy", 31, "expected `,` or `}`"),
    ("Allow group x to read repos", 28, "expected `in`, found the end"),
    ("Allow group x to read repos in compartmnt c", 32, "did you mean `compartment`?"),
    (
        "Allow group x to read repos in compartment where target.repo.name = 'x'",
        44,
        "expected the name of a compartment",
    ),
    ("Allow group x to read repos in compartment a b", 46, "expected `where` or the end, found `b`"),
    ("Allow group x to read repos in tenancy where repo = 'x'", 46, "expected a variable (request.… or target.…)"),
    ("Allow group x to read repos in tenancy where all target.repo.name = 'x'", 50, "expected `{` after `all`"),
    (
        "Allow group x to read repos in tenancy where all {target.repo.name = 'x'",
        73,
        "expected `,` or `}`, found the end",
    ),
    ("Allow group x to read repos in tenancy where target.repo.name == 'x'", 63, "expected `=`, found `==`"),
    ("Allow group x to read repos in tenancy where target.repo.name = x", 65, "write 'x'"),
    ("Allow group x to read repos in tenancy where target.repo.name = /x*", 65, "never closed: /start*/"),
    ("Allow group x to read repos in tenancy where target.repo.name in ('x')", 63, "takes `=` `!=`"),
    (
        "Allow group x to read repos in tenancy where request.utc-timestamp = '2022-01-01Z'",
        68,
        "takes `before` `after`",
    ),
    ("Allow group x to read repos in tenancy where request.utc-timestamp before 'soon'", 75, "'soon' is not a value"),
    ("Allow group x to read repos in tenancy where " + "any {" * 40, 126, "nested more than 16 deep"),
]

# The statements of the documents trainyard starts from, in their spelling.
DOCUMENTS = """
Allow group <your_data_science_users> to manage repos in compartment <your_compartment_name>
Allow group <your_data_science_users> to read repos in compartment <your_compartment_name>
Allow group <your_data_science_users> to read repos in compartment <your_compartment_name> where all { target.repo.name=<your_repo_name> }
Allow group <your_data_science_users> to manage data-science-jobs in compartment <your_compartment_name>
Allow group <your_data_science_users> to manage data-science-job-runs in compartment <your_compartment_name>
Allow group <your_data_science_users> to use virtual-network-family in compartment <your_compartment_name>
Allow group <your_data_science_users> to manage log-groups in compartment <your_compartment_name>
Allow group <your_data_science_users> to use logging-family in compartment <your_compartment_name>
Allow dynamic-group <distributed_training_job_runs> to read repos in compartment <your_compartment_name>
Allow dynamic-group <distributed_training_job_runs> to use data-science-family in compartment <your_compartment_name>
Allow dynamic-group <distributed_training_job_runs> to use virtual-network-family in compartment <your_compartment_name>
Allow dynamic-group <distributed_training_job_runs> to use log-groups in compartment <your_compartment_name>
Allow dynamic-group <distributed_training_job_runs> to use logging-family in compartment <your_compartment_name>
Allow group <your_data_science_users> to manage objects in compartment your_compartment_name where all {target.bucket.name=<your_bucket_name>}
Allow dynamic-group <distributed_training_job_runs> to manage objects in compartment your_compartment_name where all {target.bucket.name=<your_bucket_name>}
Allow dynamic-group <distributed_training_job_runs> to manage buckets in compartment your_compartment_name where all {target.bucket.name=<your_bucket_name>}
allow service datascience to use virtual-network-family in tenancy
allow dynamic-group <your-dynamic-group-name> to manage data-science-family in tenancy
allow dynamic-group <your-dynamic-group-name> to manage all-resources in tenancy
Allow group <your_data_science_users-group> to manage repos in compartment <your_compartment_name>
Allow group <your_data_science_users-group> to manage data-science-family in compartment <your_compartment_name>
Allow group <your_data_science_users-group> to manage log-content in compartment <your_compartment_name>
Allow group <your_data_science_users-group> to read metrics in compartment <your_compartment_name>
Allow dynamic-group <your-dynamic-group-name> to manage data-science-family in compartment <your_compartment_name>
Allow dynamic-group <your-dynamic-group-name> to manage log-groups in compartment <your_compartment_name>
Allow dynamic-group <your-dynamic-group-name> to manage log-content in compartment <your_compartment_name>
Allow service datascience to manage virtual-network-family in compartment <your_compartment_name>
Allow <group|dynamic-group> <group-name> to read repos in compartment <your_compartment_name> where all { target.repo.name=<your_repo_name> }
Allow <group|dynamic-group> <group-name> to manage buckets in compartment <your_compartment_name> where all {target.bucket.name=<your_bucket_name>}
""".strip().splitlines()  # noqa: E501


def _filled(line: str) -> str:
    """Placeholders replaced as a careful reader would: names in conditions in quotes."""
    head, where, condition = line.replace("<group|dynamic-group>", "group").partition(" where ")
    return head.replace("<", "").replace(">", "") + where + condition.replace("<", "'").replace(">", "'")


@pytest.mark.parametrize(("text", "canonical"), READ)
def test_reads_what_the_language_allows(text: str, canonical: str) -> None:
    assert to_text(parse_statement(text)) == canonical


@pytest.mark.parametrize(("text", "column", "message"), REFUSED)
def test_refuses_with_column_and_remedy(text: str, column: int, message: str) -> None:
    with pytest.raises(StatementError) as refusal:
        parse_statement(text)
    assert refusal.value.column == column
    assert message in str(refusal.value)


@pytest.mark.parametrize("line", DOCUMENTS)
def test_reads_every_statement_of_the_documents(line: str) -> None:
    filled = _filled(line)
    assert parse_statement(to_text(parse_statement(filled))) == parse_statement(filled)


@pytest.mark.parametrize("line", [line for line in DOCUMENTS if "<" in line])
def test_placeholders_left_in_are_refused(line: str) -> None:
    with pytest.raises(StatementError, match="is a placeholder"):
        parse_statement(line)


@given(statements)
def test_what_is_printed_is_read_back(statement: Statement) -> None:
    assert parse_statement(to_text(statement)) == statement


def _refusal(text: str) -> StatementError | None:
    try:
        parsed = parse_statement(text)
    except StatementError as refusal:
        return refusal
    assert parse_statement(to_text(parsed)) == parsed
    return None


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, f"Allow {text}", f"Allow group x to read repos in tenancy where {text}"):
        refusal = _refusal(candidate)
        assert refusal is None or 1 <= (refusal.column or 0) <= len(candidate) + 1


@given(statements, st.data())
def test_damaged_statements_are_read_or_refused(statement: Statement, data: st.DataObject) -> None:
    text = to_text(statement)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    damaged = text[:start] + data.draw(st.sampled_from(["", "'", "{", "}", "/", ",", " x ", "(", "<a>"])) + text[end:]
    refusal = _refusal(damaged)
    assert refusal is None or refusal.column
