# SPDX-License-Identifier: Apache-2.0
"""Monitoring through the official SDK: metrics are posted, listed and aggregated, by callers with permission."""

from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import oci
import pytest

from tests.support.cloud_fixture import Clients
from tests.support.cloud_world import World, refusal
from tests.support.waiting import eventually

models = oci.monitoring.models


@cache
def minute(number: float) -> datetime:
    """A time this many minutes after a recent full hour. 0 and 1 are in the same hour."""
    recent = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
    return (recent - timedelta(minutes=recent.minute == 59) if not number else minute(0)) + timedelta(minutes=number)


def _stream(world: World, namespace: str, values: dict[float, float], **more: Any) -> Any:
    """A stream of points, by their minutes."""
    points = [models.Datapoint(timestamp=minute(number), value=value) for number, value in values.items()]
    details = {
        "namespace": namespace, "compartment_id": world.compartment, "name": "loss", "dimensions": {"run": "a"},
        "datapoints": points, **more,
    }  # fmt: skip
    return models.MetricDataDetails(**details)


def _post(world: World, *streams: Any, **more: Any) -> Any:
    details = models.PostMetricDataDetails(metric_data=list(streams), **more)
    return world.clients.monitoring.post_metric_data(details).data


def _summary(world: World, namespace: str, query: str, **more: Any) -> dict[str, list[float]]:
    """The values of every stream, by the value of its dimension `run`."""
    details = models.SummarizeMetricsDataDetails(namespace=namespace, query=query, **more)
    found = world.clients.monitoring.summarize_metrics_data(world.compartment, details).data
    return {item.dimensions.get("run", ""): [point.value for point in item.aggregated_datapoints] for item in found}


def test_posted_metrics_are_listed_and_aggregated(world: World) -> None:
    first = _stream(world, "training", {0: 1.0, 0.5: 3.0, 1: 5.0}, metadata={"unit": "nats"})
    second = _stream(world, "training", {0: 10.0}, dimensions={"run": "b", "node": "0"})
    assert _post(world, first, second).failed_metrics_count == 0
    listed = world.clients.monitoring.list_metrics(world.compartment, models.ListMetricsDetails(namespace="training"))
    assert sorted(metric.dimensions["run"] for metric in listed.data) == ["a", "b"]
    for query, expected in (
        ("loss[1m].mean()", {"a": [2.0, 5.0], "b": [10.0]}),
        ("loss[1m].count()", {"a": [2.0, 1.0], "b": [1.0]}),
        ('loss[1h]{run = "a"}.max()', {"a": [5.0]}),
        ('loss[1h]{run != "a"}.sum()', {"b": [10.0]}),
        ('loss[1m]{run =~ "b*|c"}.min()', {"b": [10.0]}),
        ("loss[1d].grouping().sum()", {"": [19.0]}),
        ("loss[1d].groupBy(run).last()", {"a": [5.0], "b": [10.0]}),
        ("other[1m].mean()", {}),
    ):
        assert _summary(world, "training", query) == expected, query
    later = _summary(world, "training", "loss[1m].mean()", start_time=minute(1))
    assert later == {"a": [5.0]}


def test_an_invalid_metric_stream_is_refused_with_the_reason(world: World) -> None:
    wrong = (
        _stream(world, "oci_mine", {0: 1.0}),
        _stream(world, "Mine", {0: 1.0}),
        _stream(world, "mine", {-600: 1.0}),
        _stream(world, "mine", {}),
        _stream(world, "mine", {0: 1.0}, dimensions={}),
        _stream(world, "mine", {0: 1.0}, name="a name"),
    )
    told = _post(world, *wrong, _stream(world, "mine", {0: 7.0}))
    assert told.failed_metrics_count == len(wrong)
    assert all(failed.message for failed in told.failed_metrics)
    assert _summary(world, "mine", "loss[1m].sum()") == {"a": [7.0]}
    whole = [_stream(world, "whole", {0: 1.0}), wrong[0]]
    assert refusal(lambda: _post(world, *whole, batch_atomicity="ATOMIC")) == (400, "InvalidParameter")
    assert _summary(world, "whole", "loss[1m].sum()") == {}


@pytest.mark.parametrize(
    "query",
    ["", "loss", "loss[1m]", "loss[1m].median()", "loss[0m].mean()", "loss[9d].mean()", "loss[1m]{run}.mean()",
     'loss[1m]{run = "a" node = "b"}.mean()', "loss[1m].mean() > 90"],
)  # fmt: skip
def test_an_invalid_query_is_refused_with_the_reason(world: World, query: str) -> None:
    assert refusal(lambda: _summary(world, "training", query)) == (400, "InvalidParameter")


def test_access_to_metrics_depends_on_namespace_and_compartment(world: World) -> None:
    user = World(Clients(world.clients.cloud, "user"))
    _post(world, _stream(world, "ours", {0: 1.0}), _stream(world, "theirs", {0: 1.0}))

    def reads(namespace: str) -> bool:
        try:
            return bool(_summary(user, namespace, "loss[1m].mean()"))
        except oci.exceptions.ServiceError as error:
            if error.code != "NotAuthorizedOrNotFound":
                raise
            return False

    assert not reads("ours")
    condition = "where target.metrics.namespace = 'ours'"
    details = oci.identity.models.CreatePolicyDetails(
        compartment_id=world.clients.cloud.tenancy, name="metrics", description="metrics",
        statements=[f"allow group scientists to use metrics in compartment training {condition}"],
    )  # fmt: skip
    world.clients.identity.create_policy(details)
    assert (reads("ours"), reads("theirs")) == (True, False)
    assert _post(user, _stream(user, "ours", {0: 1.0})).failed_metrics_count == 0
    both = (_stream(user, "ours", {0: 1.0}), _stream(user, "theirs", {0: 1.0}))
    elsewhere = _stream(user, "ours", {0: 1.0}, compartment_id=world.clients.cloud.tenancy)
    for streams in (both, (elsewhere,)):
        assert refusal(partial(_post, user, *streams)) == (404, "NotAuthorizedOrNotFound")


def test_a_live_run_has_metrics_of_processor_and_memory(world: World) -> None:
    run = world.run(world.job("while True: pass"))
    query = f'CpuUtilization[1m]{{resourceId = "{run.id}"}}.max()'
    values = eventually(lambda: _summary(world, "oci_datascience_jobrun", query).get("", []), bool)
    world.clients.data_science.cancel_job_run(run.id)
    world.finished(run)
    assert 0 < values[-1] <= 100
