# SPDX-License-Identifier: Apache-2.0
"""Which folders of the cache are environments that nodes can use."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localcloud.environments import cache


def test_a_copied_environment_is_not_used_and_the_reason_names_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its programs name the folder in which it was made, and nodes do not see that: they ended with 127."""
    for name in ("first", "second", "link"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / name))
        folder = cache.environments_cache() / "pytorch-0123456789ab"
        if name == "first":
            (folder / "bin").mkdir(parents=True)
            (folder / "bin" / "python").touch()
            (folder / "torch.py").touch()
            cache.write_stamp(folder, cache.Stamp("3.11", {"torch": "2"}, {"torch": str(folder / "torch.py")}))
            original = folder
        elif name == "second":
            shutil.copytree(tmp_path / "first", tmp_path / name)
        else:
            (tmp_path / name).symlink_to(tmp_path / "first")
        is_copy = name == "second"
        assert (cache.read_stamp(folder) is None) == is_copy
        assert (f"is a copy of {original}" in cache.why_unusable(folder)) == is_copy
