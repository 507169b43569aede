# SPDX-License-Identifier: Apache-2.0
import sqlite3
import time
from contextlib import closing, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.oci.iam.statement import fits_pattern
from localcloud.oci.log_query import FITS, MAXIMUM_LENGTH, MOST_CONDITIONS, MOST_SCOPES, parse_log_query, query_scopes
from localcloud.oci.metric_query import parse_metric_query as parse_metrics
from localcloud.server.api_errors import ApiError


def _matches(query: str, **columns: str) -> bool:
    where, values = parse_log_query(query).where
    row = {"source": "", "subject": "", "type": "", "id": "", "data": "", **columns}
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.create_function(FITS, 2, fits_pattern)
        connection.execute("CREATE TABLE log_lines (source, subject, type, id, data)")
        connection.execute("INSERT INTO log_lines VALUES (?, ?, ?, ?, ?)", tuple(row.values()))
        found = connection.execute(f"SELECT count(*) FROM log_lines WHERE {where}", values).fetchone()[0]
    return bool(found)


def test_scopes_order_and_limit() -> None:
    query = parse_log_query('search "c/g/l", "c/g2" | sort by datetime asc | limit 5')
    assert (query.scopes, query.order, query.limit) == ((("c", "g", "l"), ("c", "g2")), "ASC", 5)
    assert parse_log_query('search "c"').order == "DESC"


@pytest.mark.parametrize(
    ("condition", "matched"),
    [
        ("source = 'run'", True),
        ("source != 'run'", False),
        ("logContent.source = '*un'", True),
        ("source = 'RUN'", False),
        ("source = 'run' and subject = '1'", False),
        ("source = 'x' or subject = '0'", True),
        ("data.message like '*loss | 0.5*'", True),
        ("data = '*[0.5]*'", False),
    ],
)
def test_where_clauses_match_log_lines(condition: str, matched: bool) -> None:
    assert _matches(f'search "c" | where {condition}', source="run", subject="0", data="loss | 0.5") == matched


RECORD = '{"action": "REJECT", "sourceAddress": "10.0.0.2", "destinationPort": 29500}'


@pytest.mark.parametrize(
    ("condition", "matched"),
    [
        ("data.action = 'REJECT' and data.destinationPort = 29500", True),
        ("data.action = 'REJECT' and data.destinationPort != 29500", False),
        ("logContent.data.sourceAddress = '10.0.0.*'", True),
        ("data.protocolName = 'TCP'", False),
    ],
)
def test_conditions_on_a_flow_record(condition: str, matched: bool) -> None:
    assert _matches(f'search "c" | where {condition}', data=RECORD) == matched
    assert not _matches(f'search "c" | where {condition}', data="a line of text, no record")


def test_conditions_of_two_stages_are_combined() -> None:
    assert not _matches("search \"c\" | where source = 'a' | where source = 'b'", source="a")


@pytest.mark.parametrize(
    "query",
    [
        "",
        "find it",
        "search nothing",
        'search "c" | stats count',
        'search "c" | where x = 1',
        "search \"c\" | where x = '1'",
        "search \"c\" | where data.destinationPort = '1'",
        'search "c" | where data.destinationPort like 1',
        'search "c" | where data.destinationPort = 1.5',
        "search \"c\" | where source = 'a' and",
        "search \"c\" | where source = 'a' nonsense",
        'search "c" | where source = \'a',
        'search "c" "d"',
        'search "c", ""',
        'search "c" | limit \u0665',
        'search "c" | limit 123456',
        "search " + ", ".join(['"c"'] * (MOST_SCOPES + 1)),
        'search "c" | where ' + " or ".join(["id = 'a'"] * (MOST_CONDITIONS + 1)),
        'search "c"' + " " * MAXIMUM_LENGTH,
    ],
)
def test_an_invalid_query_is_refused(query: str) -> None:
    with pytest.raises(ApiError, match="cannot be read"):
        parse_log_query(query)


@given(st.text(alphabet="search |where'\"=*and()c/;-", max_size=60))
def test_any_query_is_parsed_or_refused(text: str) -> None:
    with suppress(ApiError):
        _matches('search "c" | where ' + text)


def test_the_store_accepts_the_maximum_number_of_conditions() -> None:
    assert _matches('search "c" | where ' + " or ".join(["id = '*b*'"] * (MOST_CONDITIONS - 1) + ["id = 'a'"]), id="a")


@given(st.text("ab*", max_size=12), st.text("ab*[]?", max_size=20))
def test_a_pattern_matches_like_a_glob(pattern: str, text: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        ((expected,),) = connection.execute("SELECT ? GLOB ?", (text, pattern)).fetchall()
    assert fits_pattern(pattern, text) == bool(expected)


@pytest.mark.parametrize(
    "piece", ["|'", '|"', "'\"", '"', "'", "|", " ", "a = ", '"a"|', "*", "'*'", "[", '{a = "b", ']
)
def test_parsing_takes_linear_time(piece: str) -> None:
    """With a parser that looked ahead, a query of a quarter of a megabyte took hours."""
    begun = time.process_time()
    for read in (parse_log_query, query_scopes, parse_metrics):
        for text in (
            piece * (MAXIMUM_LENGTH // len(piece)),
            'search "c" | where data = ' + piece * 20_000,
            piece * 10**6,
        ):
            with suppress(ApiError):
                read(text)
    fits_pattern("a*" * 20_000 + "b", "a" * 40_000)
    assert time.process_time() - begun < 5
