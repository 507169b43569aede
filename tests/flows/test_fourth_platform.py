# SPDX-License-Identifier: Apache-2.0
"""A new platform: the scaffold makes its folder and its row in a copy of the checkout, the folder gets its code, and
nothing else changes. Its runs are real processes, and every command knows them."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.support.checkout_copies import ROOT, Checkout

TOOLS = Path(sys.prefix) / "bin"


SKETCH = """\
config:
  trainyard:team: arts
  trainyard:environment: sketch
  trainyard:platform: paper
  trainyard:access: { existing: true }
  trainyard:jobs:
    lines:
      framework: pytorch
      image: pencils:2
      shape: a4
      roles: { main: 1, worker: 1 }
      command: train.py
      runs: { base: {} }
"""


@pytest.fixture(scope="module")
def scaffolded(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout(tmp_path_factory.mktemp("fourth"))
    made.python("tools.scaffold", "paper", "a sheet of paper")
    return made


@pytest.fixture(scope="module")
def sketch(scaffolded: Checkout) -> dict[str, str]:
    """The commands' output directly after the scaffold."""
    file = scaffolded.root / "stacks/Pulumi.sketch.yaml"
    file.write_text(SKETCH)
    told = {name: scaffolded.python("trainyard", name, str(file)) for name in ("check", "plan", "access")}
    told["runs"] = scaffolded.run(sys.executable, "-m", "trainyard", "runs", "list", str(file)).stderr
    told["twice"] = scaffolded.run(sys.executable, "-m", "tools.scaffold", "paper", "again").stderr
    file.unlink()
    told["ruff"] = scaffolded.run(str(TOOLS / "ruff"), "check", "components/paper").stdout
    return told


@pytest.fixture(scope="module")
def checkout(scaffolded: Checkout, sketch: dict[str, str]) -> Checkout:
    scaffolded.fill_in()
    scaffolded.compose()
    return scaffolded


def test_the_scaffold_makes_a_platform_that_check_accepts(sketch: dict[str, str]) -> None:
    assert "TY902" in sketch["check"], "nothing deploys it yet"
    assert "1 file checked: 1 warning\n" in sketch["check"]
    assert "on paper\n" in sketch["plan"]
    assert sketch["access"] == "sketch: whoever may use paper may do everything\n"
    assert "`trainyard runs` cannot show runs there yet" in sketch["runs"]
    assert "components/paper exists already" in sketch["twice"]
    assert sketch["ruff"] == "All checks passed!\n"


def test_the_only_existing_files_that_change_are_those_on_the_page(checkout: Checkout) -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    listed = page.partition("The only existing files that change are ")[2].partition(".\n")[0]
    assert checkout.changed() == set(re.findall("`(.+?)`", listed))
    assert '"trainyard:sheet"' in (checkout.root / "schemas/stack.schema.json").read_text()
    assert "| TY990 | error | paper | a sheet that is not JSON |" in (checkout.root / "docs/findings.md").read_text()


def test_an_import_of_it_by_another_platform_breaks_the_contracts(checkout: Checkout) -> None:
    intruder = checkout.root / "components/oci/intruder.py"
    intruder.write_text("from components.paper.stack import PaperStack\n")
    broken = checkout.run(str(TOOLS / "lint-imports"), "--no-logo", "--no-cache")
    intruder.unlink()
    assert broken.returncode == 1
    assert "components.oci.intruder -> components.paper.stack (l.1)" in broken.stdout
    assert " kept, 2 broken." in broken.stdout


@pytest.mark.torture
@pytest.mark.parametrize("name", ["fifth", "slurm"])
def test_what_the_scaffold_writes_passes_make_check(name: str, tmp_path: Path) -> None:
    """Ruff sorts the import of a platform's own module before or after the others, by its name."""
    made = Checkout(tmp_path, tests=True)
    made.python("tools.scaffold", name, "one more platform")
    # The environment is that of the tests: nothing may look newer than it, or `make` would install the copy into it.
    for file in ("requirements-dev.txt", "pyproject.toml", "catalog/version.py"):
        os.utime(made.root / file, (0, 0))
    done = made.run("make", "check", seconds=1800)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_plan_and_access_use_the_platforms_own_terms(checkout: Checkout) -> None:
    shown = checkout.python("trainyard", "plan", str(checkout.stack))
    for told in ("on paper\n", "sheet  drawn.json", "whoever has a pencil", "addresses stand on the same sheet"):
        assert told in shown
    launch = json.loads(checkout.python("trainyard", "plan", str(checkout.stack), "--launch", "lines/base/worker-0"))
    assert (launch["rank"], launch["command"]) == (1, [str(checkout.root / "stacks/draw.py")])
    assert checkout.python("trainyard", "access", str(checkout.stack)) == "fair: whoever has a pencil may draw\n"


@pytest.mark.engine
def test_every_command_handles_its_runs(checkout: Checkout) -> None:
    sheet = checkout.stack.with_name("drawn.json")
    for words in (("stack", "init", "fair"), ("preview", "--stack", "fair")):
        checkout.pulumi(*words)
    assert not sheet.exists(), "a preview makes nothing"
    checkout.pulumi("up", "--stack", "fair", "--yes", "--skip-preview")
    drawn = json.loads(sheet.read_text())
    assert (drawn["platform"], drawn["sheet"], list(drawn["jobs"])) == ("paper", "drawn.json", ["lines"])
    assert (
        json.loads(checkout.pulumi("stack", "output", "states", "--json", "--stack", "fair"))["lines/base"]
        == "SUCCEEDED"
    )
    stack = str(checkout.stack)
    assert "fair lines/base: SUCCEEDED" in checkout.python("trainyard", "runs", "list", stack, "lines/base")
    logs = checkout.python("trainyard", "runs", "logs", stack)
    assert sorted(logs.splitlines()) == [
        "[0 main-0] rank 0 draws with a pencil", "[1 worker-0] rank 1 draws with a pencil"
    ]  # fmt: skip
    tried = checkout.python("trainyard", "run", stack, "lines", "--name", "ink", "--follow", "--", "ink")
    assert "rank 1 draws with ink" in tried
    listed = [line.split()[:2] for line in checkout.python("trainyard", "runs", "list", stack).splitlines()]
    assert listed == [["run", "state"], ["lines/base", "SUCCEEDED"], ["lines/try-ink", "SUCCEEDED"]]
    checkout.python("trainyard", "data", "put", stack, str(checkout.stack.with_name("draw.py")))
    assert "data/draw.py" in checkout.python("trainyard", "data", "list", stack)
    refused = checkout.run(sys.executable, "-m", "trainyard", "up", stack, "--local")
    assert refused.returncode != 0
    assert "fair runs on paper, which has no local cloud yet" in refused.stderr
    checkout.pulumi("destroy", "--stack", "fair", "--yes", "--skip-preview")
