# SPDX-License-Identifier: Apache-2.0
"""What a local cloud's console shows, read by the calls of its page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any
from urllib.parse import quote

from localcloud.control import Cloud
from tests.support.waiting import LONGEST_SECONDS


def read_console(cloud: Cloud, path: str) -> Any:
    with urllib.request.urlopen(f"{cloud.endpoint}/console/{path}", timeout=LONGEST_SECONDS) as answer:
        return json.loads(answer.read())


def console_sections(cloud: Cloud) -> dict[str, list[dict[str, Any]]]:
    """The items of each section, by its title."""
    return {one["title"]: one.get("items", one.get("runs")) for one in read_console(cloud, "data")["sections"]}


def console_runs(cloud: Cloud) -> dict[str, Any]:
    """The newest start of each run with its content, by its title."""
    runs = {run["title"]: run for run in reversed(console_sections(cloud)["Runs"])}
    return {title: run | read_console(cloud, f"run?id={quote(run['key'], safe='')}") for title, run in runs.items()}
