# SPDX-License-Identifier: Apache-2.0
"""A platform that nobody has thought of is added to a copy of the checkout: its home, a row, and nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trainyard import engine

ROOT = Path(__file__).resolve().parents[2]
ADDED = Path(__file__).with_name("paper_project")
# What every platform's row and keys are written into by a command.
GENERATED = {"docs/findings.md", "schemas/stack.schema.json"}
LONGEST_SECONDS = 300.0


class Checkout:
    """A copy of what git knows, and of what is new, with the platform `paper` in it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "checkout"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
        self.files = [name for name in files if name and (ROOT / name).is_file() and not name.startswith("tests/")]
        for name in self.files:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        shutil.copytree(ADDED / "paper", self.root / "components" / "paper")
        with (self.root / "catalog/platforms.toml").open("a") as table:
            table.write((ADDED / "row.toml").read_text())
        self.stack = self.root / "stacks/Pulumi.fair.yaml"
        shutil.copy(ADDED / "Pulumi.fair.yaml", self.stack)
        # A link, for `virtualenv: .venv`, without installing the SDK again.
        (self.root / ".venv").symlink_to(sys.prefix)
        self.env = engine.environment(root / "home") | {"PULUMI_OPTION_COLOR": "never", "PULUMI_SKIP_UPDATE_CHECK": "1"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=self.root, env=self.env, capture_output=True, text=True, timeout=LONGEST_SECONDS
        )

    def python(self, *words: str) -> str:
        done = self.run(sys.executable, "-m", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def changed(self) -> set[str]:
        return {name for name in self.files if (self.root / name).read_bytes() != (ROOT / name).read_bytes()}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("fourth"))
    made.python("schemas.compose")
    (made.root / "docs/findings.md").write_text(made.python("schemas.page"))
    return made


def test_only_the_row_is_written_into_a_file_that_was_there(checkout: Checkout) -> None:
    assert checkout.changed() - GENERATED == {"catalog/platforms.toml"}
    assert '"trainyard:sheet"' in (checkout.root / "schemas/stack.schema.json").read_text()
    assert "| TY990 | error | paper | a sheet that is not JSON |" in (checkout.root / "docs/findings.md").read_text()


def test_its_stack_is_checked_with_its_own_keys_and_checks(checkout: Checkout) -> None:
    assert "nothing to complain about" in checkout.python("trainyard", "check", str(checkout.stack))
    wrong = checkout.root / "stacks/Pulumi.wrong.yaml"
    text = checkout.stack.read_text()
    wrong.write_text(
        text.replace("drawn.json", "drawn.png").replace("framework: pytorch", "framework: horovod")
        + "  trainyard:network: { nat: true }\n"
    )
    found = checkout.run(sys.executable, "-m", "trainyard", "check", str(wrong)).stdout
    wrong.write_text(text + "  trainyard:compartment: ocid1.compartment.oc1..a\n")
    other = checkout.run(sys.executable, "-m", "trainyard", "check", str(wrong)).stdout
    wrong.unlink()
    for told in ("TY990", "TY903", "nobody has drawn the others yet", "TY901", "paper has no network"):
        assert told in found
    assert "`trainyard:compartment` has no effect on the platform `paper`" in other
    assert "unless the file also serves `oci`" in other


def test_its_plan_and_its_access_are_shown_in_its_words(checkout: Checkout) -> None:
    shown = checkout.python("trainyard", "plan", str(checkout.stack))
    for told in ("on paper\n", "sheet  drawn.json", "whoever has a pencil", "addresses stand on the same sheet"):
        assert told in shown
    launch = json.loads(checkout.python("trainyard", "plan", str(checkout.stack), "--launch", "lines/base/worker-0"))
    assert (launch["rank"], launch["command"]) == (1, ["train.py"])
    assert checkout.python("trainyard", "access", str(checkout.stack)) == "fair: whoever has a pencil may draw\n"


@pytest.mark.engine
def test_pulumi_brings_it_up(checkout: Checkout) -> None:
    sheet = checkout.stack.with_name("drawn.json")
    for words in (("stack", "init", "fair"), ("preview", "--stack", "fair")):
        done = checkout.run("pulumi", *words, "--non-interactive")
        assert done.returncode == 0, done.stdout + done.stderr
    assert not sheet.exists(), "a preview makes nothing"
    done = checkout.run("pulumi", "up", "--stack", "fair", "--yes", "--skip-preview", "--non-interactive")
    assert done.returncode == 0, done.stdout + done.stderr
    drawn = json.loads(sheet.read_text())
    assert (drawn["platform"], drawn["sheet"], list(drawn["jobs"])) == ("paper", "drawn.json", ["lines"])
