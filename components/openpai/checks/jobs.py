# SPDX-License-Identifier: Apache-2.0
"""Checks of the parts of a job: its resources, names, retries, code, plugins and ports."""

from __future__ import annotations

import re
from collections.abc import Iterator

from catalog.secret_looks import looks_secret, names_secret
from catalog.tables import table
from components.openpai.stack import END_OF_PARAMETER, IMAGE_NAME, OpenPaiJob, OpenPaiStack, rule
from schemas.checks.env_checks import reserved_reason, variables_set_by
from schemas.facts import Facts
from schemas.findings import Wrong, at
from schemas.model import STALL_MINUTES, Shape
from schemas.name_suggestions import quoted_list, suggest_name
from schemas.scalars import has_secret

# Role names that OpenPAI's controller does not change.
_ROLE = re.compile(r"[a-z][a-z0-9]*")


@rule("TY880", "a shape that `trainyard:skus` does not have")
def missing_sku(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    missing = {name: job.shape for name, job in stack.jobs.items() if job.shape.name not in stack.skus}
    if missing and not stack.skus:
        # One finding for all shapes, because one key corrects all of them.
        shapes = {shape.name: _proposed_sku(shape) for shape in missing.values()}
        message = f"`trainyard:skus` is missing, so nothing says what tasks of {quoted_list(shapes)} get"
        remedy = f"add `trainyard:skus: {{ {', '.join(f'{name}: {row}' for name, row in shapes.items())} }}`"
        yield Wrong(at("jobs", next(iter(missing)), "shape"), message, remedy)
        return
    for name, shape in missing.items():
        message = f"`{shape.name}` is not one of `trainyard:skus`, so the resources of its tasks are not known"
        remedy = f"{suggest_name(shape.name, stack.skus)}, or add `{shape.name}: {_proposed_sku(shape)}` there"
        yield Wrong(at("jobs", name, "shape"), message, remedy)


@rule("TY914", "a role's shape that `trainyard:skus` does not have")
def sku_of_role(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for role, spec in job.roles.items():
            if spec.shape is not None and spec.shape not in stack.skus:
                message = (
                    f"`{spec.shape}` is not one of `trainyard:skus`, so the resources of `{role}`'s tasks are not known"
                )
                remedy = f"add `{spec.shape}: {_proposed_sku(Shape(spec.shape))}` there"
                if stack.skus:
                    remedy = f"{suggest_name(spec.shape, stack.skus)}, or {remedy}"
                yield Wrong(at("jobs", name, "roles", role, "shape"), message, remedy)


def _proposed_sku(shape: Shape) -> str:
    """A row of `trainyard:skus` for a shape, from the values in the file or the catalog."""
    known = table("shapes").get(shape.name, {})
    gpus = known.get("accelerators", 0 if known or "gpu" not in shape.name.lower() else 1)
    # An OCPU is two processors.
    cpus = max(1, round(2 * shape.ocpus)) if shape.ocpus else known.get("vcpus", 4)
    memory = shape.memory_gb or known.get("memory_gib", 16)
    return f"{{ {f'gpus: {gpus}, ' if gpus else ''}cpus: {cpus}, memoryGb: {memory:g} }}"


@rule("TY889", "GPUs are needed, but the SKU has none")
def without_gpu(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        names = (job.sku_name(role) for role, spec in job.roles.items() if spec.replicas)
        without = next((sku for sku in names if sku in stack.skus and stack.skus[sku].gpus == 0), None)
        if without is not None and job.options.get("backend") == "nccl":
            message = f"NCCL needs GPUs, and `{without}` has none"
            remedy = "use `backend: gloo`, or a SKU with `gpus`"
            yield Wrong(at("jobs", name, "options", "backend"), message, remedy)


@rule("TY911", "a SKU that contradicts itself")
def sku_and_cell(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, row in stack.skus.items():
        if row.sku is not None and row.pinned_cell_id is not None:
            message = "the hived scheduler takes a type of machine or a pinned cell, and refuses both"
            remedy = "remove `sku`: the cell's machines have their type"
            yield Wrong(at("skus", name, "pinnedCellId"), message, remedy)
        if row.shm_mb is not None and row.shm_mb > row.memory_mb:
            message = f"shared memory is part of the task's memory, which is {row.memory_mb} MB"
            yield Wrong(at("skus", name, "shmMb"), message, "give the task more `memoryGb`, or use a smaller number")


@rule("TY881", "a job that restarts after it succeeded")
def endless_restarts(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for role, spec in job.roles.items():
            if spec.retry.count == -2:
                message = "-2 starts training again even after success, on paid GPUs, until somebody stops it"
                path = at("jobs", name, "roles", role, "retry", "count")
                yield Wrong(path, message, "use -1 to try again after every failure, or a number of times")


@rule("TY882", "a role's name that OpenPAI changes")
def role_name(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        # Unchanged scripts use OpenPAI's own names.
        for role, spec in {}.items() if job.start == "as-is" else job.roles.items():
            called = spec.was.first(role)
            if not _ROLE.fullmatch(called):
                message = (
                    f"OpenPAI's controller keeps lowercase letters and digits only, so tasks would not find `{called}`"
                )
                remedy = "begin with a lowercase letter, and use lowercase letters and digits only"
                yield Wrong(at("jobs", name, "roles", role), message, remedy)


@rule("TY883", "code that does not fit into a command")
def large_code(stack: OpenPaiStack, facts: Facts) -> Iterator[Wrong]:
    most = table("openpai")["largest_code_bytes"]
    for name, job in stack.jobs.items():
        folder = facts.folders.get(job.code.folder or "") if job.code else None
        if folder is not None and folder.inside and folder.bytes > most:
            size = folder.bytes // 1000
            message = f"the code has {size} kB, and it travels inside the command, which takes about {most // 1000} kB"
            remedy = "move data out of the folder, use `code: { git: … }`, or put the code into the image"
            yield Wrong(at("jobs", name, "code"), message, remedy)


@rule("TY884", "a repository's secret, which OpenPAI cannot store")
def git_secret(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.code and job.code.git and job.code.git.secret:
            message = "OpenPAI stores no secrets for repositories"
            remedy = "use a repository without a login, a code folder, or put the code into the image"
            yield Wrong(at("jobs", name, "code", "git", "secret"), message, remedy)


@rule("TY885", "a secret that everybody who sees the job can read")
def plugin_secret(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for index, plugin in enumerate(job.plugins):
            if has_secret(plugin.parameters):
                message = "a plugin's parameters are in the job's text, which OpenPAI does not hide"
                yield Wrong(at("jobs", name, "plugins", index, "parameters"), message, "pass the secret in `env`")
        for parameter, value in job.parameters.items():
            if names_secret(parameter, value) or looks_secret(value):
                message = f"`{parameter}` looks like a secret, and OpenPAI shows parameters to everybody"
                yield Wrong(at("jobs", name, "parameters", parameter), message, "pass it as a secret in `env`")


@rule("TY894", "a parameter with the name of a variable that has another meaning")
def parameter_name(stack: OpenPaiStack, facts: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        framework = facts.framework(job)
        for parameter in job.parameters:
            why = reserved_reason(stack, parameter)
            if why is None and framework is not None and parameter in variables_set_by(framework):
                why = f"{framework.name} gets it from the launcher"
            if why is not None:
                message = f"programs read parameters as variables, and `{parameter}` is reserved: {why}"
                yield Wrong(at("jobs", name, "parameters", parameter), message, "give it another name")


@rule("TY896", "a parameter that programs would not get unchanged")
def parameter_text(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for parameter, value in job.parameters.items():
            if "<%" in value:
                message = "a cluster takes `<%` for the beginning of a reference, in parameters too"
            elif END_OF_PARAMETER in value.splitlines():
                message = f"the line {END_OF_PARAMETER} ends a parameter"
            else:
                continue
            yield Wrong(at("jobs", name, "parameters", parameter), message, "pass this text in `env`")


@rule("TY886", "a plugin for a role that the job does not have")
def plugin_role(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        called = {spec.was.first(role) for role, spec in job.roles.items() if spec.replicas}
        for index, plugin in enumerate(job.plugins):
            for place, role in enumerate(plugin.taskroles):
                if role not in called:
                    path = at("jobs", name, "plugins", index, "taskroles", place)
                    yield Wrong(path, f"the job has no role `{role}`", suggest_name(role, called))


@rule("TY895", "a prerequisite that tasks cannot distinguish from another")
def invalid_prerequisite(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        taken = {IMAGE_NAME}
        for index, one in enumerate(job.prerequisites):
            path = at("jobs", name, "prerequisites", index)
            if one.name in taken:
                yield Wrong((*path, "name"), f"`{one.name}` is another prerequisite's name", "give it another name")
            if one.type != "data" and len(one.uri) > 1:
                message = f"only data may be in several places, and this is of type {one.type}"
                yield Wrong((*path, "uri"), message, "give one place, or make several prerequisites of it")
            taken.add(one.name)


@rule("TY887", "port numbers that OpenPAI does not use", severity="warning")
def fixed_ports(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.ports:
            message = (
                "tasks share the network of their hosts, so OpenPAI chooses the ports: these numbers have no effect"
            )
            remedy = "remove them, unless the file also serves another platform"
            if job.start == "as-is":
                labels = ", ".join(f"{label}: 1" for label in job.ports)
                remedy = f"give a role `ports: {{ {labels} }}`: OpenPAI reserves as many for each of its tasks"
            yield Wrong(at("jobs", name, "ports"), message, remedy)


@rule("TY888", "a size that the SKU already has", severity="warning")
def size_without_effect(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.shape.ocpus is not None or job.shape.memory_gb is not None:
            message = f"tasks get what `trainyard:skus` says of `{job.shape.name}`: the size has no effect here"
            remedy = f"write `shape: {job.shape.name}`, unless the file also serves another platform"
            yield Wrong(at("jobs", name, "shape"), message, remedy)


def _plain_jobs(stack: OpenPaiStack) -> Iterator[tuple[str, OpenPaiJob]]:
    return ((name, job) for name, job in stack.jobs.items() if job.start == "plain")


@rule("TY890", "an image whose Python is too old for the launcher")
def old_python(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        row = next((row for row in table("openpai")["old_python"] if job.image.startswith(row["image"])), None)
        if row is not None and job.start == "launcher":
            message = f"this image has Python {row['python']}; the launcher needs 3.9, and the image has no launcher"
            yield Wrong(
                at("jobs", name, "image"), message, "add `start: plain`, or build an image: `trainyard image build`"
            )


@rule("TY891", "a framework that a plain command cannot start")
def plain_framework(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    able = table("openpai")["plain"]
    for name, job in _plain_jobs(stack):
        if job.framework not in able:
            message = f"{job.framework} needs processes beside the program, and the launcher starts them"
            remedy = (
                f"remove `start: plain`, and use an image with the launcher; plain commands start {quoted_list(able)}"
            )
            yield Wrong(at("jobs", name, "start"), message, remedy)


@rule("TY892", "results in a bucket without the launcher")
def plain_bucket(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, _job in _plain_jobs(stack):
        if stack.storage is None and stack.bucket.existing is not None:
            message = "the launcher moves files to and from a bucket, and a plain command does not"
            yield Wrong(at("jobs", name, "start"), message, "use `trainyard:storage`, or an image with the launcher")


@rule("TY912", "port labels of a role whose ports trainyard names")
def own_labels(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        for role, spec in {}.items() if job.start == "as-is" else job.roles.items():
            if spec.ports:
                message = f"with `start: {job.start}` the framework's own ports are reserved, and no others"
                remedy = "remove it, or add `start: as-is`: then programs read OpenPAI's variables themselves"
                yield Wrong(at("jobs", name, "roles", role, "ports"), message, remedy)


@rule("TY913", "an option that has no effect on an unchanged command", severity="warning")
def options_as_is(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.start == "as-is" and job.options:
            message = "with `start: as-is` nothing starts but the command: options have no effect"
            remedy = "remove them, and write what they say into `command`"
            yield Wrong(at("jobs", name, "options"), message, remedy)


@rule("TY893", "a setting that needs the launcher", severity="warning")
def launchers_work(stack: OpenPaiStack, _: Facts) -> Iterator[Wrong]:
    for name, job in stack.jobs.items():
        if job.start == "launcher":
            continue
        if job.keep:
            message = "a plain command keeps only what the program writes below TRAINYARD_OUTPUT"
            yield Wrong(at("jobs", name, "keep"), message, "write these files there, or use an image with the launcher")
        if job.start == "plain" and job.stall_minutes not in (0, STALL_MINUTES):
            message = "only the launcher can see that all nodes are idle"
            remedy = "remove it, and use `maximumRuntimeMinutes`, or use an image with the launcher"
            yield Wrong(at("jobs", name, "stallMinutes"), message, remedy)
        if job.preflight == "warn":
            message = "only the launcher tests ports and nodes before training"
            yield Wrong(at("jobs", name, "preflight"), message, "remove it, or use an image with the launcher")
