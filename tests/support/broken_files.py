# SPDX-License-Identifier: Apache-2.0
"""The broken stack files. Comments in each list the findings that `check` must report: `# expect: CODE line N: word of
the remedy`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "broken"
_EXPECT = re.compile(r"# expect: (TY\d{3,4}) line (\d+): (.+)")


@dataclass(frozen=True)
class Expected:
    code: str
    line: int
    remedy: str


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


def folders() -> list[Path]:
    """Folders with several stack files, of which Pulumi.asked.yaml is wrong because of the others."""
    return sorted(path for path in (FOLDER / "folders").iterdir() if path.is_dir())


def expected(file: Path) -> list[Expected]:
    matches = map(_EXPECT.match, file.read_text("latin-1").splitlines())
    return [Expected(match[1], int(match[2]), match[3]) for match in matches if match]
