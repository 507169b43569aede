# SPDX-License-Identifier: Apache-2.0
"""What tutorials of today need of the launcher: XGBoost's tracker on Dask, and what their output means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launcher import commands, exits
from launcher.document import read_launch
from launcher.output import ends_of_logs
from launcher.placeholders import Place
from tests.support.examples import plan


def environment(example: str, **own: str) -> dict[str, str]:
    (job,) = plan(example).jobs.values()
    (run,) = list(job.runs.values())[:1]
    launch = read_launch({"TRAINYARD_LAUNCH": json.dumps(dict(run.nodes[0].launch))})
    addresses = tuple(f"10.0.0.{host}" for host in range(2, 2 + launch.nodes))
    work = commands.build_work(launch, Place(addresses, addresses[0], "eth0"), own)
    return dict(work.commands[0].environment)


def test_xgboost_on_dask_is_told_the_port_of_its_tracker() -> None:
    """The launch document has only our own variable: its bytes must not change."""
    told = environment("oci-dask-xgboost")
    assert told["DASK_XGBOOST__SCHEDULER_ADDRESS"] == told["TRAINYARD_TRACKER"] == "10.0.0.2:8810"
    own = environment("oci-dask-xgboost", DASK_XGBOOST__SCHEDULER_ADDRESS="10.0.0.2:1")
    assert own["DASK_XGBOOST__SCHEDULER_ADDRESS"] == "10.0.0.2:1"


@pytest.mark.parametrize(
    "line",
    [
        "Exception: URL fetch failure on https://storage.googleapis.com/x.npz: None -- [Errno -3] Temporary failure in"
        " name resolution",
        "socket.gaierror: [Errno -2] Name or service not known",
        "curl: (6) Could not resolve host: example.org",
        "OSError: [Errno 101] Network is unreachable",
    ],
)
def test_a_host_that_cannot_be_reached_is_named_as_the_cause(line: str) -> None:
    assert "trainyard data put" in exits.symptom_of(line)
    assert exits.symptom_of("RuntimeError: CUDA out of memory") == ""


# As raylet and abseil write them (names and addresses shortened).
RAYLET = """\
[2026-11-27 10:00:31,101 I 42 42] (raylet) main.cc:300: Raylet started
[2026-11-27 10:00:31,102 C 42 42] (raylet) node_manager.cc:120:  Check failed: gcs->Connect() TimedOut: no answer
*** StackTrace Information ***
/env/ray/core/src/ray/raylet/raylet(+0xdb9ca3) [0x55d6e1] ray::operator<<()
/env/ray/core/src/ray/raylet/raylet(_ZN3ray6RayLogD1Ev+0x4c) [0x55d6e2] ray::RayLog::~RayLog()
/lib/x86_64-linux-gnu/libc.so.6(+0x2724a) [0x7f1a] __libc_start_call_main

[2026-11-27 10:00:31,200 E 42 42] (raylet) logging.cc:474: *** SIGABRT received at time=1795 on cpu 0 ***
[2026-11-27 10:00:31,200 E 42 42] (raylet) logging.cc:474: PC: @     0x7f1a8c  (unknown)  pthread_kill
[2026-11-27 10:00:31,200 E 42 42] (raylet) logging.cc:474:     @     0x7f1a8d  (unknown)  raise
    @     0x55d6e3        144  main

"""


def test_the_end_of_a_log_is_what_says_something(tmp_path: Path) -> None:
    (tmp_path / "raylet.err").write_text(RAYLET)
    (tmp_path / "empty.out").write_text("\n\n\n\n")
    told = list(ends_of_logs(str(tmp_path)))
    assert told == [
        "the end of raylet.err:",
        "  [2026-11-27 10:00:31,101 I 42 42] (raylet) main.cc:300: Raylet started",
        "  [2026-11-27 10:00:31,102 C 42 42] (raylet) node_manager.cc:120:  Check failed: gcs->Connect() TimedOut:"
        " no answer",
        "  [2026-11-27 10:00:31,200 E 42 42] (raylet) logging.cc:474: *** SIGABRT received at time=1795 on cpu 0 ***",
    ]
