# SPDX-License-Identifier: Apache-2.0
"""Each form of a review is complete, deterministic, within its limits, and safe for any name."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema.validators import Draft202012Validator

from tests.support.review_samples import whole_repository, whole_review
from trainyard.review.forms import FORMS
from trainyard.review.gates import TrippedGate, find_tripped_gates, parse_gates
from trainyard.review.markdown import COMMENT_LIMIT, COMMENT_MARK, mermaid_flowchart
from trainyard.review.model import Review
from trainyard.review.picture import picture_svg
from trainyard.review.sections import review_verdict

SCHEMA = json.loads((Path(__file__).parents[4] / "schemas" / "review.schema.json").read_text("utf-8"))
HOSTILE = (
    "<script>alert(1)</script>",
    "</details></section><img src=x onerror=alert(1)>",
    '"]; click n0 "javascript:alert(1)"',
    "```\n# heading\n| a |\n```mermaid",
    "-->|x| n1; subgraph end",
    "![x](https://evil.example/x.png) [y](javascript:z) @team #12",
    "\x1b[31mred\x1b[0m\x07\r\u202eexe",
    "::set-output name=a::b\n::error::c",
    "##[group]x",
    "' onload='alert(1)",
)
GATES = (TrippedGate("replace", "one", "because"),)
NOTHING = Review("quiet", "stacks/Pulumi.quiet.yaml", "oci", "same", "0123456789ab", "main (abcdef)", "2026-11-26")


@pytest.mark.parametrize("form", FORMS)
def test_the_same_reviews_give_the_same_bytes(form: str) -> None:
    assert FORMS[form]([whole_review()], GATES) == FORMS[form]([whole_review()], GATES)


def test_the_first_line_is_a_verdict_with_numbers() -> None:
    first = FORMS["text"]([whole_review(many=3)], ()).splitlines()[0]
    assert first == review_verdict(whole_review(many=3))
    for words in (
        "would be refused",
        "opens 3 (3 to or from outside)",
        "3 rights gained",
        "3 replaced",
        "an unknown cost",
    ):
        assert words in first


def test_sections_are_in_the_order_of_danger() -> None:
    text = FORMS["text"]([whole_review()], ())
    titles = [
        "Who reviews, and with which program",
        "Opens, closes",
        "Gains, loses",
        "Ends, is lost",
        "What will run",
        "Costs",
        "Proof, findings, policy",
    ]
    assert [line for line in text.splitlines() if line in titles] == titles


def test_nothing_to_decide_is_one_line_and_no_comment() -> None:
    assert FORMS["text"]([NOTHING], ()) == "quiet: nothing to decide"
    assert FORMS["markdown"]([NOTHING], ()) == "quiet: nothing to decide\n"
    assert FORMS["markdown"]([NOTHING, NOTHING], ()) == "nothing to decide: 2 stacks\n"
    assert FORMS["markdown"]([whole_review()], ()).startswith(COMMENT_MARK)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "json"])
def test_what_lies_beside_the_stacks_is_said_though_no_stack_has_anything_to_decide(form: str) -> None:
    text = FORMS[form]([NOTHING], (), whole_repository("evil.py"))
    assert "evil.py 0" in text
    if form == "text":
        assert text.splitlines()[:2] == ["beside the stacks: changes of evil.py", "quiet: nothing to decide"]
        assert "3 other files changed" in text
    if form == "markdown":
        assert text.startswith(COMMENT_MARK)


def test_json_is_as_its_schema_says() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    document = json.loads(
        FORMS["json"](
            [whole_review(), NOTHING],
            find_tripped_gates([whole_review()], parse_gates("replace,program"), whole_repository()),
            whole_repository(),
        )
    )
    Draft202012Validator(SCHEMA).validate(document)
    assert [one["decisions"] for one in document["reviews"]] == [True, False]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, Any]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_page(name: str) -> None:
    plain, hostile = _Tags(), _Tags()
    plain.feed(FORMS["html"]([whole_review("x")], (), whole_repository("x")))
    hostile.feed(FORMS["html"]([whole_review(name)], (), whole_repository(name)))
    # Lines of a warning, and those of a box in the drawing, are as many as the name needs; no element is another.
    assert {tag for tag, _ in plain.seen} == {tag for tag, _ in hostile.seen}
    assert all(len([tag for tag, _ in page.seen if tag == "section"]) == 2 for page in (plain, hostile))
    attributes = {key for _, values in hostile.seen for key in values}
    assert not [key for key in attributes if key == "src" or key.startswith("on")]
    ElementTree.fromstring(picture_svg(whole_review(name).picture))


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_comment(name: str) -> None:
    text = FORMS["markdown"]([whole_review(name), whole_review("x")], (), whole_repository(name))
    assert text.count("```") == 4  # a picture for each stack
    assert text.count("<details>") == text.count("</details>")
    outside = re.sub(r"```mermaid.*?```", "", text, flags=re.DOTALL)
    assert re.findall(r"<(?!!-- trainyard review -->|/?details>|/?summary>)[^>]*>", outside) == []
    assert not re.search(r"(?<!\\)!\[|(?<!\\)\]\(|https?://|@(?!&#8203;)|\x1b|\u202e", outside)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_out_of_the_picture(name: str) -> None:
    lines = list(mermaid_flowchart(whole_review(name).picture))
    shapes = r'(n\d+\(\["L"\]\)|subgraph s0\["L"\]|n\d+\["L"\]|n\d+\[\("L"\)\]|n\d+ -->\|"L"\| n\d+|end|flowchart LR)'
    pattern = re.compile(r"\s*" + shapes.replace("L", r"[^\"|\[\]<>`]*"))
    assert [line for line in lines if not pattern.fullmatch(line)] == []


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", ["text", "sarif", "json"])
def test_names_are_escaped_for_terminals_and_runners(form: str, name: str) -> None:
    text = FORMS[form]([whole_review(name)], GATES, whole_repository(name))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    assert "##[" not in text or form != "text"


def test_a_comment_of_any_size_is_within_its_limit_and_counts_what_it_leaves_out() -> None:
    for stacks, many in ((1, 500), (40, 10), (800, 1)):
        reviews = [whole_review(f"stack-{number}", many) for number in range(stacks)]
        text = FORMS["markdown"](reviews, (), whole_repository(many=many))
        assert len(text) <= COMMENT_LIMIT
        assert "review as HTML and JSON" in text
        assert text.count("<details>") == text.count("</details>")


def test_long_sections_are_folded_whole() -> None:
    text = FORMS["markdown"]([whole_review(many=40)], ())
    assert "34 more lines" in text
    assert all(f"TCP {number} into" in text for number in range(40))


def test_sarif_has_findings_results_and_what_must_be_seen_first() -> None:
    log = json.loads(FORMS["sarif"]([replace(whole_review(), file="stacks/Pulumi.a b.yaml")], ()))
    (run,) = log["runs"]
    rules = {one["ruleId"] for one in run["results"]}
    assert rules == {
        "TY101",
        "rule",
        "r",
        "review/passages",
        "review/what-runs",
        "review/access",
        "review/lost",
        "review/program",
    }
    places = {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]}
    assert places == {"stacks/Pulumi.a%20b.yaml"}
