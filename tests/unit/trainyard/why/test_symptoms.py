# SPDX-License-Identifier: Apache-2.0
"""Known texts: rows of the catalog and of a team, matched in linear time on bounded output."""

from __future__ import annotations

import time

import pytest

from tests.unit.trainyard.why.evidence import failed, seen, stopped
from trainyard.why.judge import judge_run
from trainyard.why.symptoms import (
    LAUNCHER,
    LONGEST_LINE,
    MOST_CHARACTERS,
    PLATFORM,
    SymptomsError,
    bound_lines,
    find_symptom,
    known_symptoms,
    read_team_symptoms,
)

# What frameworks, their guides and ours have printed. Those of ADS's guide for distributed training come first.
PRINTED: dict[str, tuple[str, str]] = {
    "horovod's network": (
        "UserWarning: resource_tracker: There appear to be 15 leaked semaphore objects to clean up at shutdown",
        "lost peer",
    ),
    "an empty TensorBoard": ("No dashboards are active for the current data set.", "other"),
    "an image that may not be pushed": (
        "denied: Anonymous users are only allowed read access on public repos", "access"),
    "a full disk while an image is built": (
        "ApplyLayer exit status 1 stdout:  stderr: write /miniconda/x.so: no space left on device", "disk"),
    "a key that cannot be read": (
        "PermissionError: [Errno 13] Permission denied: '/home/oci/.oci/a-12-15-16-14.pem'", "access"),
    "a tag with two colons": (
        'invalid argument "iad.ocir.io/namespace/dt:1.0:latest" for "-t, --tag" flag: invalid reference format',
        "image"),
    "no login": (
        "failed to authorize: rpc error: code = Unknown desc = failed to fetch anonymous token: unexpected status: 401"
        " Unauthorized", "access"),
    "gloo's timeout": ("[pair.cc:525] Timed out waiting 1800000ms for recv operation to complete", "lost peer"),
    "gloo's mesh": ("Gloo connectFullMesh failed with [./gloo/transport/tcp/pair.cc:144] no error", "lost peer"),
    "the store": (
        "socket.cpp:933] [c10d] The server socket on [fdff::1]:28008 has timed out, will retry.", "lost peer"),
    "sizes": ("op.preamble.length <= op.nbytes. 13336 vs 8", "mismatch"),
    "an interface": ("RuntimeError: Unable to find address for: eth7", "interface"),
    "shared memory": ("OSError: [Errno 28] No space left on device: '/dev/shm/torch_1'", "shared memory"),
    "workers": (
        "It is possible that dataloader's workers are out of shared memory. Please try to raise it", "shared memory"),
    "read-only": ("OSError: [Errno 30] Read-only file system: '/data/x'", "read-only"),
    "the barrier that counts": ("[Rank 0]: Ranks 1 failed to pass monitoredBarrier in 20000 ms", "deadlock"),
    "NCCL's watchdog": ("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)", "lost peer"),
    "a device that is full": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "accelerator memory"),
    "a name": ("urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", "no internet"),
    "a port": ("OSError: [Errno 98] Address already in use", "port in use"),
    "a module": ("ModuleNotFoundError: No module named 'apex'", "module"),
    "dask": ("distributed.scheduler.KilledWorker: Attempted to run task 'f-1' on 4 different workers, but all those"
             " workers died", "killed"),
    "dask's nanny": ("RuntimeError: Nanny failed to start.", "lost peer"),
    "ray": ("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "lost peer"),
    "a pattern of a platform": ("assign requires shapes of both tensors to match. lhs shape= [1]", "exception"),
}  # fmt: skip


@pytest.mark.parametrize("name", PRINTED)
def test_a_known_text_is_found(name: str) -> None:
    line, kind = PRINTED[name]
    found = find_symptom(["before", line, "after"], [row for row in known_symptoms() if not row.tested])
    assert found is not None
    assert (found.symptom.kind, found.line) == (kind, line)
    assert found.symptom.look


def test_every_row_of_the_catalog_is_whole() -> None:
    rows = known_symptoms()
    assert {PLATFORM, LAUNCHER, "output"} == {row.source for row in rows}
    assert all(row.meaning and row.look for row in rows)
    own = [row for row in rows if row.remedy]
    assert len(own) >= 30
    assert len(rows) > len(own), "and the patterns of platforms"


def test_a_row_of_another_framework_does_not_match() -> None:
    line = ["RuntimeError: Nanny failed to start."]
    assert find_symptom(line, known_symptoms(), framework="pytorch") is None
    assert find_symptom(line, known_symptoms(), framework="dask") is not None
    assert find_symptom(line, known_symptoms()) is not None, "a framework that is not known may be any"


def test_the_last_lines_count_before_earlier_ones() -> None:
    lines = ["OSError: [Errno 28] No space left on device", *["step"] * 60, "RuntimeError: Connection closed by peer"]
    found = find_symptom(lines, known_symptoms())
    assert found is not None
    assert found.symptom.kind == "lost peer"


TEAM = """
[[symptom]]
kind = "other"
patterns = ["licence server * did not answer", "No space left on device"]
meaning = "got no licence"
look = "the licence server"
remedy = "Wait"
"""


def test_a_teams_rows_come_first() -> None:
    rows = (*read_team_symptoms(TEAM, "symptoms.toml"), *known_symptoms())
    evidence = seen(stopped(1), failed(), output={1: ["The Licence Server 10.0.0.1 did not answer"]})
    found = judge_run(evidence, rows)
    assert (found.kind, found.ranks, found.remedy) == ("other", (1,), "Wait")
    assert "it got no licence: The Licence Server 10.0.0.1 did not answer" in found.cause
    assert judge_run(seen(stopped(1), failed(), output={1: ["No space left on device"]}), rows).kind == "other"


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("[[symptom]", "no TOML"),
        ("[other]\na = 1", "write one [[symptom]]"),
        ("symptom = 3", "write one [[symptom]]"),
        ("symptom = [3]", "number 1: this is no table"),
        (TEAM.replace('kind = "other"', 'kind = "sunspots"'), "`kind` is one of none"),
        (TEAM.replace('look = "the licence server"\n', ""), "add the column `look`"),
        (TEAM + 'extra = "x"', "unknown column `extra`"),
        (TEAM.replace('["licence server * did not answer", "No space left on device"]', '"x"'), "a list of texts"),
        (TEAM.replace("licence server * did not answer", "*.*a"), "at least 4 letters"),
        (TEAM.replace('"Wait"', "3"), "are texts"),
        (TEAM + 'from = "the moon"', "`from` is one of output"),
    ],
)
def test_a_mistake_in_a_teams_file_is_named(content: str, wrong: str) -> None:
    with pytest.raises(SymptomsError, match=r"symptoms\.toml") as error:
        read_team_symptoms(content, "symptoms.toml")
    assert wrong in str(error.value)


def test_only_the_end_of_long_output_is_read_and_in_linear_time() -> None:
    assert list(bound_lines(["a", "b"])) == ["a", "b"]
    assert sum(map(len, bound_lines(["x" * 70] * 100_000))) <= MOST_CHARACTERS
    assert max(map(len, bound_lines(["x" * 10_000_000]))) == LONGEST_LINE
    # What makes a regular expression with two stars slow.
    rows = read_team_symptoms(TEAM.replace("licence server * did not answer", "a*a*a*a*a*a*a*a*b!"), "symptoms.toml")
    began = time.process_time()
    assert find_symptom(["a" * LONGEST_LINE] * 32, rows) is None
    hostile = ["Timed out waiting " * 100, "\x1b[2J" * 400, "\ud800" * 500, 'File "' * 300, "[" * LONGEST_LINE] * 6
    assert judge_run(seen(stopped(1), failed(), output={1: hostile}), known_symptoms()).ranks == (1,)
    assert time.process_time() - began < 2


def test_the_verdict_of_many_ranks_is_there_at_once() -> None:
    output = {rank: ["step 1"] * 199 + ["RuntimeError: Connection closed by peer"] for rank in range(64)}
    evidence = seen(*[failed(), *[stopped(0)] * 63], output=output)
    began = time.process_time()
    assert judge_run(evidence, known_symptoms()).kind == "lost peer"
    assert time.process_time() - began < 1
    assert judge_run(seen(*[failed(), *[stopped(0)] * 499]), known_symptoms()).ranks == (0,)
