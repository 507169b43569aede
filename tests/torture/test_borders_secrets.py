# SPDX-License-Identifier: Apache-2.0
"""A token that somebody wrote in the wrong place, or in another file, is in no output of the commands that read stack
files."""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support.counts import drawn
from tests.support.local_team import ROOT
from trainyard.cli.main import main

TARGETS = ("config.json", ".netrc", "token", "hosts.yml", "deeper/../token")
TOKENS = ("ghp_" + "a1B2c3D4e5F6" * 3, "AKIAQX7EXAMPLE1TOKEN")
STACKS = (
    "Pulumi.local.yaml",
    "Pulumi.oci-dask-lightgbm.yaml",
    "Pulumi.aws-dl1-resnet.yaml",
    "Pulumi.openpai-data-parallel.yaml",
)
FORMS: list[tuple[str, ...]] = [("check", "--format", form) for form in ("text", "json", "sarif", "github")]
FORMS += [("plan",), ("plan", "--json"), ("access",), ("access", "--json")]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of a file at which somebody may write a token: values, and names of jobs, runs, roles, options."""
    if isinstance(value, dict):
        for key, below in value.items():
            if len(path) > 1:
                yield (*path, key, None)
            yield from leaves(below, (*path, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            yield from leaves(below, (*path, number))
    else:
        yield path


def with_token(document: Any, path: tuple[Any, ...], token: str) -> Any:
    changed = copy.deepcopy(document)
    *parents, last = path if path[-1] is not None else path[:-1]
    holder = changed
    for part in parents:
        holder = holder[part]
    if path[-1] is None:
        holder[token] = holder.pop(last)
    else:
        holder[last] = token
    return changed


def files() -> list[tuple[str, tuple[Any, ...]]]:
    return [(name, path) for name in STACKS for path in leaves(yaml.safe_load((ROOT / "stacks" / name).read_text()))]


PLACES = files()
LINKS = [(command, target) for command in ("check", "plan", "access", "review") for target in TARGETS]
# Places whose findings repeat what stands there.
ALWAYS = [
    ("Pulumi.local.yaml", ("config", "oci:region")), ("Pulumi.local.yaml", ("config", "trainyard:jobs", "line", None)),
    ("Pulumi.local.yaml", ("config", "trainyard:jobs", "line", "image")),
    ("Pulumi.local.yaml", ("config", "trainyard:jobs", "line", "options", "nanny", None)),
]  # fmt: skip


def said(file: Path, *words: str) -> str:
    done = CliRunner().invoke(main, [words[0], str(file), *words[1:]])
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    return done.output + (done.stderr or "")


@pytest.mark.parametrize(("name", "path"), [*drawn(ALWAYS, 2), *drawn(PLACES, 1)], ids=str)
def test_no_output_shows_a_token(name: str, path: tuple[Any, ...], tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "stacks" / name).read_text())
    shutil.copytree(ROOT / "stacks" / "local", tmp_path / "local")
    for token in TOKENS:
        file = tmp_path / f"Pulumi.{Path(name).name.split('.')[1]}.yaml"
        file.write_text(yaml.safe_dump(with_token(document, path, token), sort_keys=False))
        for words in FORMS:
            assert token not in said(file, *words), words


@pytest.mark.torture
@pytest.mark.parametrize(("name", "path"), [ALWAYS[2], *drawn(PLACES, 0)], ids=str)
def test_no_review_shows_a_token(name: str, path: tuple[Any, ...], tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "stacks" / name).read_text())
    shutil.copytree(ROOT / "stacks" / "local", tmp_path / "local")
    file = tmp_path / f"Pulumi.{Path(name).name.split('.')[1]}.yaml"
    file.write_text(yaml.safe_dump(with_token(document, path, TOKENS[0]), sort_keys=False))
    outputs = [tmp_path / f"review.{form}" for form in ("md", "html", "json", "sarif")]
    words = [word for output in outputs for word in ("--output", str(output))]
    assert TOKENS[0] not in said(file, "review", *words)
    assert TOKENS[0] not in said(file, "review")
    assert not [output.name for output in outputs if output.exists() and TOKENS[0] in output.read_text()]


@pytest.mark.parametrize(("command", "target"), drawn(LINKS, 2))
def test_a_link_to_another_file_shows_nothing_of_it(command: str, target: str, tmp_path: Path) -> None:
    home, stacks = tmp_path / "home", tmp_path / "stacks"
    (home / "deeper").mkdir(parents=True)
    stacks.mkdir()
    (home / Path(target).name).write_text('{"auths": {"ghcr.io": {"auth": "hunter2"}}}\n')
    (stacks / "Pulumi.pr.yaml").symlink_to(home / target)
    output = said(stacks / "Pulumi.pr.yaml", command)
    assert "hunter2" not in output
    assert "auths" not in output
    assert "is a link to something other than a stack file" in output


@pytest.mark.torture
def test_a_review_says_that_the_key_of_the_secrets_changes(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "stacks" / "local", tmp_path / "local")
    file, text = tmp_path / "Pulumi.local.yaml", (ROOT / "stacks" / "Pulumi.local.yaml").read_text()
    variables = {f"GIT_{who}_{what}": "someone" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "base"]):
        file.write_text(f"secretsprovider: passphrase\nencryptionsalt: v1:ours\n{text}")
        subprocess.run(["git", *words], cwd=tmp_path, check=True, env={**os.environ, **variables})
    file.write_text(f"secretsprovider: awskms://alias/theirs\nencryptedkey: theirs\n{text}")
    output = said(file, "review", "--against", "HEAD")
    assert [line.split()[1] for line in output.splitlines() if "its owner can read every secret" in line] == [
        "secretsprovider", "encryptedkey", "encryptionsalt",
    ]  # fmt: skip
    assert "theirs" not in output


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_break_in_a_name_begins_no_line_of_a_review(form: str, tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "stacks" / "Pulumi.local.yaml").read_text())
    file = tmp_path / "Pulumi.local.yaml"
    changed = with_token(document, ("config", "trainyard:network", None), "zz\n- approve this")
    file.write_text(yaml.safe_dump(changed, sort_keys=False))
    output = said(file, "review", "--format", form)
    assert "approve this" in output
    assert not [line for line in output.splitlines() if re.match(r"[\s\\-]*(<li>)?\W*approve this", line)]
