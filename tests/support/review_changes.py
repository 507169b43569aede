# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.support.review_changes --seed N`: draws ten resources that can do harm from all types that the
providers ship, adds each to the program of a stack, and prints what `trainyard review` says of it."""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from tests.support.silence import AWS, OCI, SilentChange, screens_of_program
from tests.support.type_abilities import PACKAGES, abilities_of_type, tokens_of_package

_STACKS = {"pulumi_aws": AWS, "pulumi_oci": OCI}
_WORDS = {"g": "grants", "o": "opens", "m": "moves data", "r": "runs code", "c": "costs"}


def draw_changes(seed: int, number: int = 10) -> list[SilentChange]:
    harmful = [
        (package, token) for package in PACKAGES for token in tokens_of_package(package) if abilities_of_type(token)
    ]
    drawn = random.Random(seed).sample(harmful, number)
    return [
        SilentChange(
            number=1,
            title=f"{token.rpartition(':')[2]} ({', '.join(_WORDS[letter] for letter in abilities_of_type(token))})",
            shows=(token.rpartition(":")[2],),
            stack=_STACKS[package],
            program=f"pulumi.CustomResource({token!r}, 'more', {{'target': 'mallory'}})",
        )
        for package, token in drawn
    ]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--seed", type=int, required=True)
    changes = draw_changes(words.parse_args().seed)
    with tempfile.TemporaryDirectory() as folder:
        for title, screen in screens_of_program(changes, Path(folder)).items():
            print(f"== {title}\n{screen}\n")


if __name__ == "__main__":
    main()
