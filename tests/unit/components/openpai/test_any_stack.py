# SPDX-License-Identifier: Apache-2.0
"""The jobs of random stacks are valid by the protocol."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from catalog import frameworks
from catalog.tables import table
from components.openpai.job import protocol_of, protocol_to_check
from components.openpai.protocol import parse_job_text, protocol_problems, text_of
from components.plan.build import plan_of
from tests.support.openpai_jobs import as_shown_by_a_cluster, judged_stack
from tests.support.stack_strategies import names, texts, variables

_secrets = texts.map(lambda text: {"secure": text})
_variables = variables.filter(lambda name: not name.startswith(("PAI_", "FC_", "AWS_")) and not name.endswith("_"))
_env = st.dictionaries(_variables, texts | _secrets, max_size=3)
_completion = st.fixed_dictionaries({"minFailed": st.just(1) | st.just(-1), "minSucceeded": st.just(1) | st.just(-1)})
_plugins = st.lists(
    st.fixed_dictionaries(
        {
            "plugin": st.sampled_from(["ssh", "cmd", "tensorboard"]),
            "parameters": st.dictionaries(names, texts, max_size=2),
        }
    ),
    max_size=2,
)
_prerequisites = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["data", "script", "output"]),
            "name": names,
            "uri": st.lists(texts, min_size=1, max_size=2),
            "before": st.lists(texts, max_size=2),
            "after": st.lists(texts, max_size=2),
        }
    ),
    max_size=3,
)

# Values are parts of the names of runs, and so of jobs.
_values = st.lists(st.floats(0, 1) | st.text(max_size=5), min_size=1, max_size=2)
_each = st.fixed_dictionaries({}, optional={"each": st.fixed_dictionaries({"lr": _values})})


@st.composite
def roles(draw: st.DrawFn, framework: str, strategy: str | None) -> dict[str, Any]:
    rows = frameworks.framework_row(framework, strategy).roles
    made = {}
    for name, row in rows.items():
        replicas = draw(st.integers(row.minimum, min(row.maximum or 4, 4)))
        if replicas:
            count = draw(st.integers(-1, 3))
            made[name] = {"replicas": replicas, "retry": {"count": count}, "env": draw(_env)}
            made[name] |= {"completion": draw(_completion)} if draw(st.booleans()) else {}
    return made


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    framework = draw(st.sampled_from(frameworks.framework_names()))
    strategies: list[str | None] = [*frameworks.framework_row(framework).strategies]
    strategy = draw(st.sampled_from(strategies or [None]))
    plain = framework in table("openpai")["plain"] and draw(st.booleans())
    job: dict[str, Any] = {
        "framework": framework,
        "roles": draw(roles(framework, strategy)),
        "start": "plain" if plain else "launcher",
        "env": draw(_env),
        "plugins": draw(_plugins),
        "prerequisites": draw(_prerequisites),
        "parameters": draw(st.dictionaries(_variables, texts, max_size=2)),
        "runs": {draw(names): {"args": draw(st.lists(texts, max_size=3)), "env": draw(_env), **draw(_each)}},
    }
    job |= {"strategy": strategy} if strategy else {}
    return job


@given(jobs())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
def test_any_job_is_valid_by_the_protocol(job: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        read = judged_stack(Path(folder), job)
    assume(not read.errors)
    plan = plan_of(read)
    own: Any = plan.jobs["train"]
    for run in own.runs.values():
        made = protocol_to_check(protocol_of(plan, own, run, None), run)  # type: ignore[arg-type]
        assert protocol_problems(made) == []
        text = text_of(made)
        assert parse_job_text(text) == made
        for secret in made.get("secrets", {}).values():
            assert len(secret) < 8 or secret not in as_shown_by_a_cluster(text)
