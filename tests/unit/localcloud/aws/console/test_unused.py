# SPDX-License-Identifier: Apache-2.0
"""If AWS was never used in a local cloud, its console does not import moto."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOK = """
import asyncio, sys
from pathlib import Path
from localcloud.server.faults import Faults
from localcloud.server.cloud import ServedCloud
from localcloud.oci.tenancy_store import FaultTable, StateStore
from localcloud.aws.cloud import AwsCloud
from localcloud.console.platform import console_platforms

async def look():
    home = Path(sys.argv[1])
    store = StateStore(home / "state.sqlite3")
    cloud = ServedCloud(home=home, store=store)
    aws = AwsCloud(home, "http://127.0.0.1:1", Faults(FaultTable(store)))
    cloud.apis = (aws,)
    for platform in console_platforms(cloud):
        assert list(await platform.runs()) == [], platform
        assert not any(section.items for section in await platform.sections()), platform
    await aws.close()
    store.close()

asyncio.run(look())
print([name for name in ("moto", "botocore", "boto3") if name in sys.modules])
"""


def test_neither_moto_nor_botocore_is_imported(tmp_path: Path) -> None:
    words = [sys.executable, "-c", LOOK, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
    assert not (tmp_path / "aws" / "state.sqlite3").exists()
