# SPDX-License-Identifier: Apache-2.0
"""A new built-in framework changes the files that docs/architecture.md names, and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.checkout_copies import ROOT, Checkout

# The tests that know all frameworks.
TESTS = (
    "tests/contract/test_stack_schema.py::test_the_schema_for_editors_is_composed_of_the_sections",
    "tests/contract/test_stack_schema.py::test_an_editor_completes_the_names_of_frameworks_and_strategies",
    "tests/contract/test_stack_schema.py::test_schema_and_catalog_know_the_same_platforms_and_frameworks",
    "tests/unit/components/platform/test_recipes.py::test_every_framework_has_an_image_for_nodes_with_and_without_a_gpu",
    "tests/unit/components/platform/test_recipes.py::test_the_table_has_no_row_without_a_framework",
    "tests/unit/localcloud/environments/test_rows.py::test_every_framework_is_served",
)
IMAGE = """
[deepspeed]
dockerfile = "base"

[deepspeed.always]
FRAMEWORK = "deepspeed"
SUMMARY = "DeepSpeed on PyTorch"
REQUIREMENTS = "launcher/images/accelerate/requirements.txt"
MODULES = "torch.distributed"
"""


def test_a_built_in_framework_changes_the_files_that_the_page_names(tmp_path: Path) -> None:
    made = Checkout(tmp_path, tests=True)
    (made.root / "catalog/frameworks/deepspeed.toml").write_text(
        'name = "deepspeed"\nsummary = "DeepSpeed on PyTorch"\nextends = "pytorch"\n'
    )
    with (made.root / "launcher/images/images.toml").open("a") as rows:
        rows.write(IMAGE)
    environments = made.root / "catalog/environments.toml"
    served = environments.read_text()
    environments.write_text(served.replace('serves = ["accelerate", ', 'serves = ["accelerate", "deepspeed", '))
    made.python("schemas.compose")
    subprocess.run(["git", "init", "-q"], cwd=made.root, check=True)
    done = made.run(sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *TESTS)
    assert done.returncode == 0, done.stdout + done.stderr
    rows_of_page = (ROOT / "docs/architecture.md").read_text().splitlines()
    row = next(line for line in rows_of_page if line.startswith("| a built-in framework"))
    named = set(re.findall(r"`([a-z_]+/[a-z./_]+)`", row.partition("If it needs")[0]))
    assert made.changed() == named - {"catalog/frameworks/torchrun.toml"}
