# SPDX-License-Identifier: Apache-2.0
"""The modules that a script certainly imports, found by parsing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from schemas.job_code import code_files
from schemas.scripts import read_scripts


def imports(folder: Path, files: Mapping[str, str | bytes], command: str = "train.py --epochs 2") -> set[str]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    there = frozenset(file.relative_to(folder).as_posix() for file in code_files(folder))
    return {one.module for one in read_scripts(folder, there, [command]).certain}


def test_only_what_every_start_comes_by_counts(tmp_path: Path) -> None:
    script = """
import os, numpy.linalg as la
from torch import nn
from __future__ import annotations
try:
    import apex
except ImportError:
    import cupy
if TYPE_CHECKING:
    import typed
with contextlib.suppress(ImportError):
    import maybe
with open("x"):
    import opened
def main():
    import wandb
class Model:
    import inside
if __name__ == "__main__":
    import started
raise SystemExit("never run")
"""
    found = imports(tmp_path, {"train.py": script})
    assert found == {"os", "numpy", "torch", "__future__", "opened", "inside", "started"}


def test_own_modules_are_followed_and_others_are_not_read(tmp_path: Path) -> None:
    files = {
        "train.py": "import model, pkg.deep\nfrom pkg import late\n",
        "model.py": "import scipy\n",
        "pkg/__init__.py": "from . import near\nfrom ..up import x\n",
        "pkg/deep.py": "def f():\n    import helper_of_deep\nfrom .near import y\n",
        "pkg/near.py": "import einops\n",
        "pkg/late.py": "import tqdm\n",
        "plots.py": "import matplotlib\n",
        "tests/test_model.py": "import pytest\n",
    }
    assert imports(tmp_path, files) == {"scipy", "einops", "tqdm"}


@pytest.mark.parametrize("command", ["python -m pkg.train", "bash -c x pkg/train.py", "./pkg/train.py"])
def test_the_script_is_found_in_the_command(tmp_path: Path, command: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/train.py": "import beside\nimport einops\n", "pkg/beside.py": "import tqdm\n"}
    assert imports(tmp_path, files, command) == {"einops", "tqdm"}


@pytest.mark.parametrize(
    "source",
    [b"def broken(:\n", b"\xff\xfe\x00", b"import x\n" + b"#" * 600_000, b"(" * 5000, b"x = " + b"-" * 100_000 + b"1",
     b"# -*- coding: nonsense -*-\nimport x\n"],
)  # fmt: skip
def test_what_cannot_be_parsed_imports_nothing(tmp_path: Path, source: bytes) -> None:
    assert imports(tmp_path, {"train.py": source}) == set()


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("import secret\n")
    code = tmp_path / "code"
    code.mkdir()
    (code / "linked.py").symlink_to(tmp_path / "outside.py")
    assert imports(code, {"train.py": "import linked, tqdm\n"}) == {"linked", "tqdm"}
