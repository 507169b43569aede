# SPDX-License-Identifier: Apache-2.0
"""Stands in for `gh api`: answers from a JSON file with the state of a repository, and writes comments into it.

python github_stand_in.py STATE.json api [--method METHOD] repos/OWNER/NAME/PATH?QUERY [--input -]
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

BOT = "github-actions[bot]"
State = dict[str, Any]
Query = dict[str, str]


def list_pulls(state: State, query: Query) -> Any:
    owner, _, branch = query.get("head", "").partition(":")
    return [
        pull
        for pull in state["pulls"]
        if "head" not in query
        or (pull["head"]["repo"]["full_name"].startswith(f"{owner}/") and pull["head"]["ref"] == branch)
    ]


def list_runs(state: State, query: Query) -> Any:
    return [run for run in state["runs"] if (run["head_sha"], run["event"]) == (query["head_sha"], query["event"])]


def list_artifacts(state: State, run: str) -> Any:
    file = state["artifacts"].get(run)
    size = Path(file).stat().st_size if file else 0
    return [{"id": int(run), "name": "review", "expired": False, "size_in_bytes": size}] if file else []


def write_comment(state: State, number: str, text: str) -> None:
    comments = state["comments"].setdefault(number, [])
    comments.append({"id": 100, "user": {"login": BOT}, "body": text})


def change_comment(state: State, number: str, text: str) -> None:
    for comments in state["comments"].values():
        for comment in comments:
            if comment["id"] == int(number):
                comment["body"] = text


# Path -> the key below which a page of the list stands, and the list.
ROUTES: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("pulls", "", lambda state, query: list_pulls(state, query)),
    (r"pulls/(\d+)/files", "", lambda state, query, number: state["files"].get(number, [])),
    (r"issues/(\d+)/comments", "", lambda state, query, number: state["comments"].get(number, [])),
    ("actions/workflows/review.yml/runs", "workflow_runs", lambda state, query: list_runs(state, query)),
    (r"actions/runs/(\d+)/artifacts", "artifacts", lambda state, query, run: list_artifacts(state, run)),
)


def main(file: Path, arguments: list[str]) -> None:
    state: State = json.loads(file.read_text())
    assert arguments.pop(0) == "api"
    method = arguments[1] if arguments[0] == "--method" else "GET"
    place, _, text = next(word for word in arguments if word.startswith("repos/")).partition("?")
    path, query = place.removeprefix("repos/a/b/"), {key: values[0] for key, values in parse_qs(text).items()}
    if method != "GET":
        state["calls"].append(f"{method} {path}")
        written = json.load(sys.stdin)["body"]
        number = path.split("/")[-1 if method == "PATCH" else 1]
        (change_comment if method == "PATCH" else write_comment)(state, number, written)
        file.write_text(json.dumps(state))
        return
    if zipped := re.fullmatch(r"actions/artifacts/(\d+)/zip", path):
        sys.stdout.buffer.write(Path(state["artifacts"][zipped[1]]).read_bytes())
        return
    if single := re.fullmatch(r"pulls/(\d+)", path):
        counted = state.get("changed_files", len(state["files"].get(single[1], [])))
        json.dump({"changed_files": counted}, sys.stdout)
        return
    for pattern, key, answer in ROUTES:
        if found := re.fullmatch(pattern, path):
            size, page = int(query["per_page"]), int(query["page"])
            items = answer(state, query, *found.groups())[(page - 1) * size : page * size]
            json.dump({key: items} if key else items, sys.stdout)
            return
    sys.exit(f"the stand-in does not know {method} {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
