# SPDX-License-Identifier: Apache-2.0
"""Shared by all tests: seeds that make a failed run repeatable, and CI's rule that no test is skipped silently."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from localcloud.files import VARIABLE, WHERE_POSSIBLE
from tests.support.counts import wanted

# The fixtures `cloud` and `shared_cloud`, and the handling of SIGTERM.
pytest_plugins = ("tests.support.cloud_fixture", "tests.support.ending")
NO_SKIPS = "TRAINYARD_NO_SKIPS"
# Otherwise gRPC logs to stderr every connection that its peer closes.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# The suite also runs on machines without namespaces, such as containers. Tests of refusals set `required` themselves.
os.environ.setdefault(VARIABLE, WHERE_POSSIBLE)
# Under nohup, or with `make test &` in a script, signals are ignored, and every process of a test would inherit that:
# Ctrl-C could not be tested. A handler that does nothing is not inherited, and this process still ignores the signals.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

EXAMPLES = wanted(sample=25, full=5000)
# No test fails because the machine is busy: Hypothesis has no deadline, and does not report slow generation.
settings.register_profile("torture", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sample", settings.get_profile("torture"), derandomize=True)
settings.load_profile("torture" if os.environ.get("TRAINYARD_TORTURE") else "sample")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skip that would hide a missing installation step is a failure."""
    report = yield
    if report.skipped and os.environ.get(NO_SKIPS) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and {NO_SKIPS} is set: {report.longrepr}"
    return report


def pytest_configure() -> None:
    """Thousands of tests and modules exist until the end. Repeated garbage collection over all of them took a seventh
    of the time.
    """
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Collects no garbage in the middle of a quick test. If a test nests JSON to the recursion limit, a finalizer of an
    earlier test's garbage would run at that depth, and its error would fail this test.
    """
    if not item.nodeid.startswith(("tests/unit/", "tests/contract/")):
        return (yield)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves slow tests that add little coverage to `make torture`."""
    left = [] if os.environ.get("TRAINYARD_TORTURE") else [item for item in items if item.get_closest_marker("torture")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
