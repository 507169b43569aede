# SPDX-License-Identifier: Apache-2.0
"""Results on a storage of the local cluster, in which tasks may have put links anywhere."""

from pathlib import Path

import pytest

from components.openpai.local.stacks import OutputFolder


def test_no_link_is_followed_also_none_on_the_way(tmp_path: Path) -> None:
    storage, secret = tmp_path / "storages" / "shared", tmp_path / "home"
    (secret / "output" / "deep").mkdir(parents=True)
    for name in ("result.json", "deep/more"):
        (secret / "output" / name).write_text("{}")
    (storage / "run").mkdir(parents=True)
    (storage / "run" / "start").symlink_to(secret)
    for folder in ("run/start/output", "run/start", "gone/output"):
        output = OutputFolder(storage, folder)
        assert output.sizes() == {}, folder
        with pytest.raises(OSError, match=r"(Not a directory|No such file)"):
            output.read("result.json")
    (storage / "run" / "start").unlink()
    (secret).rename(storage / "run" / "start")
    (storage / "run" / "start" / "output" / "link").symlink_to(tmp_path)
    output = OutputFolder(storage, "run/start/output")
    assert (output.sizes(), output.read("deep/more")) == ({"deep/more": 2, "result.json": 2}, b"{}")
