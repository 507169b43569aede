# SPDX-License-Identifier: Apache-2.0
"""What this machine needs whatever the platform: an engine, the packages of the stack's program, a tool for images.
Asks no network, and imports no SDK."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from io import StringIO

from catalog.platforms import platforms, platforms_with, require_capability
from components.platform.calls import ProviderError
from components.platform.images import ImageError, PlatformImages
from components.platform.prerequisites import Answer, Check, Prerequisites, Problem, Question, Remark
from trainyard.engine.obtain import cached_engine, engine_on_path, is_whole
from trainyard.engine.progress import Progress
from trainyard.engine.tools import CHECKOUT
from trainyard.engine.trusted import PlantedError
from trainyard.engine.versions import OLDEST_ENGINE, Machine
from trainyard.images.image_tools import find_tool


def local_checks(question: Question) -> Iterator[Check]:
    """Without a stack: what any stack needs, and the credentials that are here."""
    plan = question.plan
    yield Check("engine", lambda: _check_engine(question))
    yield Check("packages", lambda: _check_packages([plan.platform] if plan else []))
    if question.where.cloud is None:
        yield Check("image tool", lambda: _check_image_tool(question))
    for name in [plan.platform] if plan else platforms_with(Prerequisites):
        if name in platforms_with(Prerequisites):
            yield from require_capability(name, Prerequisites).local_checks(question)


def _check_engine(question: Question) -> Iterator[Answer]:
    said, why = StringIO(), ""
    if engine_on_path(question.environment, Progress(said)) is not None:
        return
    try:
        if is_whole(cached_engine(question.environment, Machine.here())):
            return
    except (PlantedError, OSError) as error:
        why = str(error).partition("\n")[0]
    why = why or said.getvalue().strip().removeprefix("trainyard: ")
    yield Problem(
        f"there is no Pulumi engine of at least {OLDEST_ENGINE}{f' ({why})' if why else ''}",
        "`make setup` gets one, once for all clones; or install Pulumi, so that `pulumi` is on PATH",
    )


def _check_packages(names: list[str]) -> Iterator[Answer]:
    """The environment that Pulumi.yaml names, and the SDKs that a stack's program imports."""
    if not (CHECKOUT / ".venv" / "bin" / "python").exists():
        yield Problem(f"Pulumi runs stacks with {CHECKOUT / '.venv'}, which is missing", "make setup")
    for row in (platforms()[name] for name in names):
        for package in ("pulumi", f"pulumi_{row.provider}") if row.provider else ("pulumi",):
            try:
                version(package)
            except PackageNotFoundError:
                install = f".venv/bin/pip install --require-hashes -r {row.requirements}"
                yield Problem(f"the package {package} is not installed", f"`make setup`, or {install}")


def _check_image_tool(question: Question) -> Iterator[Answer]:
    """Only needed where images are built on this machine, and a stack says which those are."""
    plan = question.plan
    try:
        if plan is not None:
            if plan.platform not in platforms_with(PlatformImages):
                return
            images = require_capability(plan.platform, PlatformImages).make(plan, question.environment)
            # Addresses are not looked up: whether there is anything to build does not depend on them.
            if not images.wanted_images(plan, "", "", None, dry_run=True)[0]:
                return
        find_tool(None, False, lambda line: None)
    except ImageError as error:
        words, _, remedy = str(error).rpartition("\n")
        found = " ".join(words.split())
        if plan is None:
            yield Remark(f"{found}: that matters only where images are built")
        else:
            yield Remark(f"{found}; to build this stack's images here: {remedy}")
    except OSError as error:
        raise ProviderError(f"the tools for images cannot be asked: {error.strerror}") from error
