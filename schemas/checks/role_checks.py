# SPDX-License-Identifier: Apache-2.0
"""Checks of frameworks, strategies, roles and options against the framework's rows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from catalog.frameworks import Framework, OptionRow
from schemas.facts import Facts
from schemas.findings import Wrong, at, rule
from schemas.job_on_platform import JobOnPlatform
from schemas.model import Stack
from schemas.name_suggestions import count_noun, quoted_list, suggest_name


def _framework_title(framework: Framework) -> str:
    return f"{framework.name} ({framework.strategy})" if framework.strategy else framework.name


@rule("TY401", "an unknown framework")
def unknown_job_framework(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.framework not in facts.framework_names():
            remedy = suggest_name(job.framework, facts.framework_names())
            yield Wrong(at("jobs", name, "framework"), f"`{job.framework}` is not a known framework", remedy)


@rule("TY402", "an unknown strategy")
def unknown_strategy(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        strategies = facts.strategies(job.framework)
        if job.strategy is None or job.framework not in facts.framework_names() or job.strategy in strategies:
            continue
        message = f"{job.framework} has no strategy `{job.strategy}`"
        yield Wrong(at("jobs", name, "strategy"), message, suggest_name(job.strategy, strategies))


@rule("TY403", "an unknown role")
def unknown_role(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for role in job.roles:
            if role not in framework.roles:
                message = f"{_framework_title(framework)} has no role `{role}`"
                yield Wrong(at("jobs", name, "roles", role), message, suggest_name(role, framework.roles))


@rule("TY404", "a number of nodes that the framework does not allow")
def wrong_node_count(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for role, limits in framework.roles.items():
            spec, title = job.roles.get(role), _framework_title(framework)
            if spec is None:
                continue
            if spec.replicas < limits.minimum:
                message = f"`{role}` has {spec.replicas} nodes; {title} needs {limits.minimum}: {limits.why}"
                yield Wrong(at("jobs", name, "roles", role), message, f"use {limits.minimum} or more")
            if limits.maximum is not None and spec.replicas > limits.maximum:
                message = f"`{role}` has {spec.replicas} nodes; {title} allows {limits.maximum}: {limits.why}"
                yield Wrong(at("jobs", name, "roles", role), message, f"use {limits.maximum}")


@rule("TY405", "a role is missing")
def missing_role(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for role, limits in framework.roles.items():
            if role not in job.roles and limits.minimum > 0:
                message = f"{_framework_title(framework)} needs the role `{role}`: {limits.why}"
                yield Wrong(at("jobs", name, "roles"), message, f"add `{role}: {limits.minimum}`")


@rule("TY406", "an unknown option")
def unknown_option(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for option in job.options:
            if option not in framework.options:
                message = f"{_framework_title(framework)} has no option `{option}`"
                yield Wrong(at("jobs", name, "options", option), message, suggest_name(option, framework.options))


@rule("TY407", "an option's value does not fit")
def wrong_option(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for option, value in job.options.items():
            choice = framework.options.get(option)
            complaint = _option_complaint(choice, value) if choice else None
            if choice and complaint:
                yield Wrong(at("jobs", name, "options", option), f"`{option}` {complaint}", choice.meaning)


@rule("TY417", "a number above 1 without the option that it needs")
def several_without_option(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        options = JobOnPlatform.of(stack, job, framework).options
        for option, choice in framework.options.items():
            count = options[option]
            if choice.several_need and type(count) is int and count > 1 and not options[choice.several_need]:
                message = (
                    f"{_framework_title(framework)} starts {count} {option} on a node only with `{choice.several_need}`"
                )
                remedy = f"set `options: {{ {choice.several_need}: true }}`, or `{option}: 1`"
                yield Wrong(at("jobs", name, "options", option), message, remedy)


_TYPES: dict[str, tuple[type, ...]] = {"boolean": (bool,), "integer": (int,), "number": (int, float), "string": (str,)}


def _option_complaint(option: OptionRow, value: bool | int | float | str) -> str | None:
    if type(value) not in _TYPES[option.type]:
        return f"is not of the type {option.type}"
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    if option.values and value not in option.values:
        return f"is not one of {quoted_list(option.values)}"
    if isinstance(value, int | float):
        if option.minimum is not None and value < option.minimum:
            return f"is less than {option.minimum:g}"
        if option.maximum is not None and value > option.maximum:
            return f"is more than {option.maximum:g}"
    return None


@rule("TY408", "one-node training with several nodes")
def mirrored_on_several_nodes(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        if framework.strategy == "mirrored" and job.nodes > 1:
            message = f"the strategy `mirrored` uses the GPUs of one node; {job.nodes} nodes are asked for"
            yield Wrong(at("jobs", name, "roles"), message, "use `strategy: multi-worker-mirrored`, or one node")


@rule("TY409", "bounds of elastic training that contradict the job")
def elastic_bounds(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        least, most = job.options.get("minNodes", 0), job.options.get("maxNodes", 0)
        if "elastic" not in framework.options or type(least) is not int or type(most) is not int:
            continue
        path = at("jobs", name, "options")
        if (least or most) and job.options.get("elastic") is not True:
            yield Wrong(path, "`minNodes` and `maxNodes` have no effect without `elastic`", "add `elastic: true`")
        if least > job.nodes:
            message = f"`minNodes` is {least}, but the job has {count_noun(job.nodes, 'node')}"
            yield Wrong((*path, "minNodes"), message, f"use {job.nodes} or less, or more workers")
        if most > job.nodes >= least:
            message = f"`maxNodes` is {most}, but the job never starts more than {count_noun(job.nodes, 'node')}"
            yield Wrong((*path, "maxNodes"), message, f"use {job.nodes}, or more workers and a smaller `minNodes`")
        if most and most < max(least, job.nodes):
            message = f"`maxNodes` is {most}, but the job starts with {count_noun(job.nodes, 'node')}"
            yield Wrong((*path, "maxNodes"), message, f"use {max(least, job.nodes)} or more")


@rule("TY410", "a framework's file cannot be used")
def unusable_framework_file(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, own in facts.own_frameworks.items():
        if own.problem is not None:
            message = f"`{stack.frameworks[name]}` {own.problem}"
            remedy = "write it with the columns of catalog/frameworks/*.toml, inside the project"
            yield Wrong(at("frameworks", name), message, remedy)


@rule("TY411", "a framework of that name is built in")
def built_in_framework_name(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    built_in = set(facts.framework_names()[: -len(facts.own_frameworks) or None])
    for name in facts.own_frameworks:
        if name in built_in:
            yield Wrong(at("frameworks", name), f"`{name}` is a built-in framework", "give yours another name")


@rule("TY412", "GPUs are needed, but the shape has none")
def shape_without_gpu(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        shape = facts.shapes.get(job.shape.name)
        if shape is None or shape.get("accelerators"):
            continue
        if job.options.get("backend") == "nccl":
            message = f"NCCL needs GPUs, but {job.shape.name} has none"
            yield Wrong(at("jobs", name, "options", "backend"), message, "use `backend: gloo`, or a GPU shape")


@rule("TY413", "completion counts more nodes than the role has")
def completion_count(stack: Stack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for role, spec in job.roles.items():
            least_failed = spec.completion.min_failed if spec.completion.min_failed != 1 else None
            for key, count in (("minFailed", least_failed), ("minSucceeded", spec.completion.min_succeeded)):
                if count is not None and (count == 0 or count > spec.replicas):
                    message = f"`{key}` is {count}, but `{role}` has {count_noun(spec.replicas, 'node')}"
                    path = at("jobs", name, "roles", role, "completion", key)
                    yield Wrong(path, message, f"use 1 to {spec.replicas}, or -1")


@rule("TY414", "more processes than accelerators", severity="warning")
def oversubscribed_accelerators(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        shape = facts.shapes.get(job.shape.name, {})
        cards = shape.get("processes") or shape.get("accelerators", 0)
        processes = job.options.get("processes")
        if cards and type(processes) is int and processes > cards:
            message = f"{processes} processes share the {count_noun(cards, 'accelerator')} of {job.shape.name}"
            yield Wrong(at("jobs", name, "options", "processes"), message, f"use {cards}, one for each accelerator")


@rule("TY415", "nodes find each other through logs, but logs are off")
def driver_without_log(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        if "adsDriver" in framework.options and job.options.get("adsDriver") is True and not stack.logs.enabled:
            message = "ADS's own driver finds the main node by reading its run's log, but `trainyard:logs` is off"
            yield Wrong(
                at("jobs", name, "options", "adsDriver"), message, "set `logs: { enabled: true }`, or remove it"
            )


@rule("TY416", "a command that nothing runs")
def unused_command(stack: Stack, facts: Facts) -> Iterator[Wrong]:
    for name, job, framework in facts.known_jobs(stack):
        for role, spec in job.roles.items():
            known_role = framework.roles.get(role)
            if known_role is not None and spec.command is not None and not known_role.runs_command:
                message = f"nodes of `{role}` run {framework.name} itself, not a command"
                runs = next((other for other, other_role in framework.roles.items() if other_role.runs_command), None)
                remedy = f"remove it; the job's command runs on `{runs}`" if runs else "remove it"
                yield Wrong(at("jobs", name, "roles", role, "command"), message, remedy)
