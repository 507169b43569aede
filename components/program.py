# SPDX-License-Identifier: Apache-2.0
"""The program that `pulumi up` runs. It makes resources from the stack's configuration, or none if that has
an error."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pulumi
import yaml
from pulumi.runtime import config

from catalog.platforms import platform_with, platforms, require_capability
from components.messages import RefusedError, moved_platform, program_error, warn_user
from components.outputs import last_outputs
from components.plan.build import WARNINGS_SHOWN, plan_of
from components.plan.platform import Deployment
from schemas.findings import Path as KeyPath
from schemas.findings import dotted_path
from schemas.judge import judge_config
from schemas.unfilled_values import PLACEHOLDERS_ALLOWED, UNFILLED

# The folder of the stack files, if Pulumi runs with `--config-file` (`trainyard up --stacks DIR` sets it).
STACKS = "TRAINYARD_STACKS"
CHECKOUT = Path(__file__).resolve().parents[1]


def run() -> None:
    # A program runs for seconds. The garbage collector would scan the packages' 300,000 objects repeatedly: with 1,000
    # runs, that took a third of the CPU time, to save 20 MB.
    gc.disable()
    name = pulumi.get_stack()
    judged = judge_config(
        {**config.get_config_env(), **config.CONFIG.get()},
        {*config.get_config_secret_keys_env(), *config._SECRET_KEYS.get()},
        name,
        stack_file(name),
    )
    texts = {
        finding: f"{finding.file}:{finding.line}: {finding.code} {_key_prefix(finding.path)}{finding.message}\n"
        f"  {finding.remedy}"
        for finding in judged.findings
    }
    unfilled = [] if os.environ.get(PLACEHOLDERS_ALLOWED) else [one for one in judged.findings if one.code == UNFILLED]
    if unfilled:
        raise program_error("The stack file is not filled in:\n" + "\n".join(texts[finding] for finding in unfilled))
    if judged.errors:
        raise program_error("The stack file cannot be used:\n" + "\n".join(texts[error] for error in judged.errors))
    for text in () if os.environ.get(WARNINGS_SHOWN) else texts.values():
        warn_user(text)
    plan = plan_of(judged)
    if not platforms()[plan.platform].deploys:
        raise program_error(f"This release of trainyard does not deploy to {plan.platform} yet. Nothing was changed.")
    try:
        # On another platform, Pulumi would make everything there, and delete everything on the old one.
        there = platform_with(last_outputs())
        if there and there != plan.platform:
            raise RefusedError([moved_platform(plan.platform, there)])
        made = require_capability(plan.platform, Deployment).deploy(plan, judged.folder)
    except RefusedError as refused:
        placed = sorted((judged.source.position(wrong.path)[0], wrong) for wrong in refused.wrongs)
        lines = (
            f"{judged.source.file}:{line}: {_key_prefix(wrong.path)}{wrong.message}\n  {wrong.remedy}"
            for line, wrong in placed
        )
        message = "The stack cannot be made as its file says, so nothing was changed:\n" + "\n".join(lines)
        raise program_error(message) from None
    except ModuleNotFoundError as missing:
        raise program_error(not_installed(plan.platform, missing)) from None
    for key, value in made.items():
        pulumi.export(key, value)


def stack_file(name: str) -> Path:
    """The file of this stack, to find line numbers. Pulumi does not tell the program which file it read.

    A team's own repository has its own Pulumi.yaml (`main:` leads here), or names the folder of its files in STACKS.
    """
    named = os.environ.get(STACKS)
    if named:
        return Path(named) / f"Pulumi.{name}.yaml"
    root = Path(pulumi.runtime.get_root_directory())
    project = yaml.safe_load((root / "Pulumi.yaml").read_text("utf-8"))
    return root / (project.get("stackConfigDir") or ".") / f"Pulumi.{name}.yaml"


def not_installed(platform: str, missing: ModuleNotFoundError) -> str:
    file = CHECKOUT / platforms()[platform].requirements
    return (
        f"The platform `{platform}` needs the Python package `{missing.name}`.\n"
        f"Install it: `pulumi install`, or {sys.executable} -I -m pip install -r {file}"
    )


def _key_prefix(path: KeyPath) -> str:
    named = dotted_path(path)
    return f"{named}: " if named else ""
