# SPDX-License-Identifier: Apache-2.0
"""The command `trainyard review` on a repository with commits: the output, and its most important lines first."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.review_examples import (
    AWS,
    CIPHERTEXT,
    OCI,
    PAGE,
    PAI,
    Config,
    commit_changes,
    edit,
    git,
    make_repository,
    page_with,
    review,
)

# Modules without which a review has fewer sections.
PARTS = ("trainyard.review.reach", "trainyard.review.access_changes", "trainyard.review.rendezvous", "policies.offline")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path)
    return tmp_path


def reviews(text: str) -> dict[str, Config]:
    return {one["stack"]: one for one in json.loads(text)["reviews"]}


def test_a_commit_without_changes_gets_one_line_for_each_stack(repository: Path) -> None:
    lines = review(repository, "--all", "--against", "HEAD").splitlines()
    assert lines == [f"{name}: nothing to decide" for name in sorted((OCI, AWS, PAI))]


def written(folder: Path, *words: str, code: int = 0) -> dict[str, str]:
    """One review in every output format, by file extension."""
    files = {end: folder / f"review{end}" for end in (".txt", ".md", ".html", ".json", ".sarif")}
    review(folder, *words, *(word for file in files.values() for word in ("--output", str(file))), code=code)
    return {end: file.read_text("utf-8") for end, file in files.items()}


def test_openings_gains_and_replacements_are_urgent(repository: Path) -> None:
    commit_changes(repository)
    forms = written(repository, "--all", "--against", "HEAD~1", "--fail-on", "replace", code=1)
    found = reviews(forms[".json"])
    replaced = {name: {one["name"] for one in found[name]["changes"] if one["kind"] == "replaced"} for name in found}
    assert {"resnet/base", "resnet/tuned"} <= replaced[OCI]
    assert replaced[PAI] == {"cifar10/base"}
    assert {one["gate"] for one in json.loads(forms[".json"])["gates"]} == {"replace"}
    for name in (OCI, AWS):
        if not any("not judged by this build" in one for one in found[name]["unjudged"]):
            assert any(one["outside"] for one in found[name]["opened"]), name
            assert found[name]["gained"], name
            assert "resnet" in {one.split("/")[0] for one in replaced[name]}, name
    lines = forms[".txt"].splitlines()
    assert [line.partition(":")[0] for line in lines[:3]] == sorted((OCI, AWS, PAI))
    assert "2 replaced" in lines[1]
    assert "starts 2 runs" in lines[1]


def test_the_examples_of_the_page_are_the_commands_output(repository: Path) -> None:
    if missing := [part for part in PARTS if find_spec(part) is None]:
        pytest.skip(f"this build has no {', '.join(missing)}")
    commit_changes(repository)
    page = PAGE.read_text("utf-8")
    assert page.count("<!-- example: ") == 3
    assert page_with(page, repository) == page


def test_refusals_and_warnings_of_the_program_are_shown(repository: Path) -> None:
    edit(repository, OCI, lambda config: config["trainyard:network"].update(cidr="10.99.0.0/16"))
    edit(repository, AWS, lambda config: config["trainyard:jobs"]["resnet"].update(blockStorageGb=600))
    found = reviews(review(repository, OCI, AWS, "--against", "HEAD", "--format", "json"))
    assert any("leaves subnets outside" in text for text in found[OCI]["warnings"])
    assert any("the machines of the job `resnet` are replaced" in text for text in found[AWS]["warnings"])
    edit(repository, OCI, lambda config: config["trainyard:bucket"].update(versioning=False))
    refused = reviews(review(repository, OCI, "--against", "HEAD", "--format", "json"))[OCI]
    assert "trainyard:bucket.versioning" in refused["refused"]
    assert any(one["kind"] == "changed" for one in refused["changes"])


def test_an_ended_waiver_is_a_failure_although_nothing_changed(repository: Path) -> None:
    def waived(config: Config) -> None:
        config["trainyard:bucket"] = {"name": "scratch", "versioning": False}
        reason = {"reason": "scratch data", "until": "2026-12-31"}
        config["trainyard:waivers"] = {"unversioned-bucket": reason}

    edit(repository, OCI, waived)
    git(repository, "commit", "-qam", "waived")
    words = (OCI, "--against", "HEAD", "--format", "json", "--policy-config", str(repository / "pack.json"))
    (repository / "pack.json").write_text('{"unversioned-bucket": "mandatory"}')
    in_force = reviews(review(repository, *words, "--on", "2026-12-31", "--fail-on", "policy"))[OCI]
    assert (in_force["kind"], in_force["pack"]) == ("same", [])
    ended = reviews(review(repository, *words, "--on", "2027-01-01", "--fail-on", "policy", code=1))[OCI]
    (row,) = ended["pack"]
    assert (row["code"], row["level"], row["outcome"]) == ("unversioned-bucket", "mandatory", "fail")
    assert row["waiver"] == "its waiver ended on 2026-12-31"
    assert "its waiver ended on 2026-12-31" in row["message"]
    # The check of the stack file uses the same date.
    new = reviews(review(repository, OCI, "--format", "json", "--on", "2027-01-01"))[OCI]
    assert "TY722" in {one["code"] for one in new["findings"]}
    assert "TY722" not in {one["code"] for one in reviews(review(repository, OCI, "--format", "json"))[OCI]["findings"]}


def test_a_stack_may_be_new_removed_or_broken(repository: Path) -> None:
    (repository / "stacks" / f"Pulumi.{OCI}.yaml").rename(repository / "stacks" / "Pulumi.oci-new.yaml")
    edit(repository, AWS, lambda config: config["trainyard:jobs"]["resnet"].update(framework="pytroch"))
    found = reviews(review(repository, "--all", "--against", "HEAD", "--format", "json"))
    assert {name: one["kind"] for name, one in found.items()} == {
        "oci-new": "new", OCI: "removed", AWS: "changed", PAI: "same",
    }  # fmt: skip
    assert "errors" in found[AWS]["refused"]
    assert found[AWS]["changes"] == []
    assert any(one["level"] == "error" for one in found[AWS]["findings"])
    assert any(one["kind"] == "blocked" for one in found[OCI]["changes"])


def test_no_form_shows_a_secret_and_another_secret_is_a_change(repository: Path) -> None:
    other = CIPHERTEXT.replace("c2Vj", "b3Ro")
    edit(repository, PAI, lambda config: config["trainyard:cluster"].update(token={"secure": other}))
    forms = written(repository, PAI, "--against", "HEAD")
    assert not [end for end, text in forms.items() if CIPHERTEXT in text or other in text]
    (changed,) = reviews(forms[".json"])[PAI]["changes"]
    assert (changed["kind"], changed["because"]) == ("changed", ["token"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "nowhere"], "no revision `nowhere`"),
        (["oci-pytorch-dpd"], "did you mean `oci-pytorch-ddp`?"),
        (["--on", "yesterday"], "not a date"),
        (["--fail-on", "replaced"], "did you mean `replace`?"),
        (["--prices", "nowhere.toml"], "nowhere.toml"),
        (["--preview", "nowhere.json"], "one stack"),
        ([OCI, "--preview", "nowhere.json"], "nowhere.json"),
    ],
)
def test_mistakes_get_messages_without_tracebacks(words: list[str], said: str, repository: Path) -> None:
    shown = review(repository, *words, code=2)
    assert said in shown
    assert "Traceback" not in shown
