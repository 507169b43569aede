# SPDX-License-Identifier: Apache-2.0
"""The part of `test_aws_disk.py` that runs in a mount namespace, on a small file system.

It writes more data than the disk can hold, and prints the results of these and later calls as JSON.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from tests.support.aws_clients import AwsClients
from tests.support.cloud_fixture import local_cloud

SIZE = "6m"
ENOUGH = 60


def _put(s3: Any, name: str) -> list[Any]:
    try:
        s3.put_object(Bucket="data", Key=name, Body=name.encode() * 50_000)
    except ClientError as error:
        return [error.response["ResponseMetadata"]["HTTPStatusCode"], error.response["Error"]["Message"]]
    return [200]


def _names(s3: Any) -> list[str]:
    return [row["Key"] for row in s3.list_objects_v2(Bucket="data").get("Contents", [])]


def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    with local_cloud(folder / "cloud") as cloud:
        s3 = AwsClients(cloud)["s3"]
        s3.create_bucket(Bucket="data")
        puts: list[list[Any]] = []
        while len(puts) < ENOUGH and (not puts or puts[-1] == [200]):
            puts.append(_put(s3, f"o{len(puts):03}"))
        stored = _names(s3)
        for name in stored[:4]:
            kept = folder / "cloud" / "aws" / "objects"
            file = next(path for path in kept.iterdir() if path.read_bytes().startswith(name.encode()))
            file.write_bytes(b"")  # Frees space on the disk, as an administrator would.
        told = {
            "puts": puts, "stored": len(stored), "after": _put(s3, "after"), "then": len(_names(s3)),
            "tracebacks": (folder / "cloud" / "server.log").read_text().count("Traceback"),
        }  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
