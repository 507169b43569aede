# SPDX-License-Identifier: Apache-2.0
"""Code from git: the commit that the stack names runs on every node."""

from __future__ import annotations

import functools
import http.server
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.model import Code, Git
from tests.support.nodes import Place, nodes, planned
from tests.support.repository import repository
from tests.support.serving import serving


def test_the_named_commit_runs(place: Place, tmp_path: Path) -> None:
    url, commit = repository(tmp_path / "repository")
    code = Code(git=Git(url, "main", commit, None))
    spec = planned("pytorch", {"main": 1, "worker": 1}, ports={"data": "all"}, code=code, command="python main.py")
    with nodes(place, tmp_path / "nodes", spec, "git") as run:
        assert run.start().codes() == [0, 0]
        assert "[1] code 1 helps" in run.launchers[1].text


def test_a_missing_repository_is_reported(place: Place, tmp_path: Path) -> None:
    code = Code(git=Git(f"file://{tmp_path}/nowhere", None, None, None))
    spec = planned("pytorch", {"main": 1}, ports={"data": "all"}, code=code, command="python main.py")
    with nodes(place, tmp_path / "nodes", spec, "git-nowhere") as run:
        assert run.start().codes() == [75]
        assert "the code cannot be cloned from git: " in run.launchers[0].text


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder that is served by HTTP, with a password in it as people write it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with serving(
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    ) as place:
        yield f"http://ann:planted%21word@{place}"


def test_a_password_in_a_repository_s_address_is_not_printed(tmp_path: Path) -> None:
    repository(tmp_path / "repository")
    subprocess.run(["git", "update-server-info"], cwd=tmp_path / "repository", check=True)
    roles = {"main": 1}
    with served(tmp_path / "repository") as address:
        for path, words, code in (("/.git", "****@127.0.0.1", 0), ("/nowhere/", "cannot be cloned from git", 75)):
            found = Code(git=Git(address + path, None, None, None))
            spec = planned("pytorch", roles, ports={"data": "all"}, code=found, command="python main.py")
            with nodes(None, tmp_path / f"nodes-{code}", spec, "git-password") as run:
                assert run.start().codes() == [code]
                printed = run.shown()
            assert words in printed
            assert "planted" not in printed
