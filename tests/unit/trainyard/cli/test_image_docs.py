# SPDX-License-Identifier: Apache-2.0
"""docs/images.md names exactly the options of the commands."""

from __future__ import annotations

import re

import click

from components.oci.client.registry import TOKEN_USER, repository_command
from components.plan.build import build_plan
from components.platform.images import PROJECT
from tests.support.samples import stack
from trainyard.cli.image import image
from trainyard.images.build_push import ENDPOINT_VARIABLE

PAGE = (PROJECT / "docs" / "images.md").read_text("utf-8")


def test_every_option_it_names_is_there() -> None:
    options = {
        name
        for command in image.commands.values()
        for option in command.params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    named = set(re.findall(r"(?<=[`\s])(--[a-z][a-z-]+)", PAGE)) - {
        "--target",
        "--username",
        "--password-stdin",
        "--check",
    }
    assert named <= options, named - options


def test_it_has_the_words_that_are_printed() -> None:
    assert repository_command(build_plan(stack())).replace("vision-dev", "vision-prod") in PAGE
    assert ENDPOINT_VARIABLE in PAGE
    assert TOKEN_USER in PAGE
