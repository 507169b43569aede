# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.platform.values import UNKNOWN, Change, Diff, DiffRules, Secret, compare_inputs, reveal_secrets
from provider.base.reasons import as_path, diff_reasons

_RULES = DiffRules(replace=frozenset({"nodes", "image"}))


def _words(old: Any, new: Any) -> list[str]:
    return diff_reasons(compare_inputs(reveal_secrets(old), reveal_secrets(new), _RULES), old, new)


def _nodes(*commands: list[str], **more: Any) -> dict[str, Any]:
    launch = [json.dumps({"command": command, **more}) for command in commands]
    return {"nodes": [{"environment": {"LAUNCH": text}} for text in launch]}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"attempt": 1}, {"attempt": 2}, ["attempt: 1 -> 2"]),
        ({"image": "r/a:1"}, {"image": "r/a:2"}, ["image: r/a:1 -> r/a:2"]),
        ({}, {"log": "x"}, ["log: + x"]),
        ({"log": "x"}, {}, ["log: - x"]),
        ({"job": "x"}, {"job": UNKNOWN}, ["job: x -> (known later)"]),
        ({"shape": {"cpus": 1}}, {"shape": {"cpus": 2}}, ["shape.cpus: 1 -> 2"]),
        ({"cidrs": ["10.0.0.0/16"]}, {"cidrs": ["10.1.0.0/16"]}, ["cidrs[0]: 10.0.0.0/16 -> 10.1.0.0/16"]),
        ({"note": "two\nlines"}, {"note": "x"}, ['note: "two\\nlines" -> x']),
        # One word of one node's command, decoded from the launch document; of all nodes, once.
        (_nodes(["t.py", "10"]), _nodes(["t.py", "12"]), ["nodes[0].environment.LAUNCH.command[1]: 10 -> 12"]),
        (_nodes(["10"], ["10"]), _nodes(["12"], ["12"]), ["nodes[*].environment.LAUNCH.command[0]: 10 -> 12"]),
        (
            _nodes(["t.py", "--epochs", "10"]),
            _nodes(["t.py", "--fast", "--epochs", "10"]),
            ["nodes[0].environment.LAUNCH.command[1]: + --fast"],
        ),
        ({"nodes": [{"name": "main"}]}, {"nodes": [{"name": "main"}, {"name": "worker-1"}]}, ["nodes[1]: + worker-1"]),
        ({"rules": [{"port": 1}]}, {"rules": [{"port": 1}, {"port": 2}]}, ["rules[1]: + {1}"]),
        # Secrets are named and never shown, where they are marked and where their text turns up again.
        ({"env": {"TOKEN": Secret("hush-1")}}, {"env": {"TOKEN": Secret("hush-2")}}, ["env.TOKEN: [secret]"]),
        ({"env": Secret({"TOKEN": "1"})}, {"env": Secret({"TOKEN": "2"})}, ["env.TOKEN: [secret]"]),
        (
            {"t": Secret("hush-1"), "url": "http://x/" + "y" * 40 + "/hush-1"},
            {"t": Secret("hush-1"), "url": "http://z/hush-1"},
            ['url: "http://x/yyyyyyyyyyyyyy…yyyyyyyyyyyyyy/[secret]" -> "http://z/[secret]"'],
        ),
    ],
)
def test_a_difference_is_described_by_path_old_and_new_value(old: Any, new: Any, words: list[str]) -> None:
    assert _words(old, new) == words


def test_what_replaces_comes_first_and_the_rest_is_counted() -> None:
    tags = {f"t{number}": number for number in range(6)}
    words = _words({"tags": {}, "image": "1"} | tags, {"tags": {}, "image": "2"} | dict.fromkeys(tags, 9))
    assert words[0] == "image: 1 -> 2"
    assert words[-1] == "… 3 more"


def test_a_reason_of_its_own_wins() -> None:
    assert diff_reasons(Diff({"state": Change("update", True, "starts again")}), {}, {}) == ["state: starts again"]


_TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.text(max_size=4)
    | st.just(UNKNOWN)
    | st.builds(Secret, st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=3), _TREES), st.dictionaries(st.text(max_size=3), _TREES))
def test_every_difference_has_words_that_are_one_line(old: Any, new: Any) -> None:
    words = _words(old, new)
    assert not any("\n" in word or "\r" in word for word in words)
    assert all(as_path(word).endswith('"]') for word in words)


@given(st.text("§¶", min_size=4), st.text("ab/ ", max_size=60))
def test_no_secret_is_ever_shown(secret: str, around: str) -> None:
    """Not even a part of it, where a long text is cut short."""
    old = {"env": Secret({"TOKEN": secret}), "url": f"{around}{secret}{around}", "nodes": [Secret(secret), "a"]}
    new = {"env": Secret({"TOKEN": "another"}), "url": f"{around}x", "nodes": ["a"]}
    assert not {"§", "¶"} & set("".join(_words(old, new)))
