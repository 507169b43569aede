# SPDX-License-Identifier: Apache-2.0
"""What every test shares: seeds that make a red run repeatable, and CI's rule that nothing is skipped in silence."""

import gc
import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from localcloud.files import VARIABLE, WHERE_POSSIBLE
from tests.support.counts import wanted

# The fixtures `cloud` and `shared_cloud`, and how a run that is told to end does so.
pytest_plugins = ("tests.support.cloud_fixture", "tests.support.ending")
NO_SKIPS = "TRAINYARD_NO_SKIPS"
# gRPC tells on stderr of every connection that its other side closes.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
# The suite runs on machines that give no namespaces, too (a container, say). Tests of what is refused there ask for it.
os.environ.setdefault(VARIABLE, WHERE_POSSIBLE)
# A script's `make test &` and nohup leave signals ignored, and every process a test starts would inherit that: Ctrl-C
# could not be tested. A handler that does nothing is not inherited, and this process goes on ignoring the signals.
for _number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, lambda *_: None)

EXAMPLES = wanted(sample=25, full=5000)
# No test fails because the machine does other work: neither by a deadline nor by the time that making examples takes.
settings.register_profile("torture", max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sample", settings.get_profile("torture"), derandomize=True)
settings.load_profile("torture" if os.environ.get("TRAINYARD_TORTURE") else "sample")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where a skip would hide a missing install step, it is a failure."""
    report = yield
    if report.skipped and os.environ.get(NO_SKIPS) and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and {NO_SKIPS} is set: {report.longrepr}"
    return report


def pytest_configure() -> None:
    """Thousands of tests and modules live until the end. Looking through all of them for garbage, over and over, took a
    seventh of the time."""
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """No garbage is collected in the middle of a quick test: where one nests JSON to the recursion limit, a finalizer
    of some earlier test's garbage would run at that depth, fail there, and be this test's failure."""
    if not item.nodeid.startswith(("tests/unit/", "tests/contract/")):
        return (yield)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes minutes and shows little more than its neighbours is left to `make torture`."""
    left = [] if os.environ.get("TRAINYARD_TORTURE") else [item for item in items if item.get_closest_marker("torture")]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]
