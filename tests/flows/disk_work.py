# SPDX-License-Identifier: Apache-2.0
"""The part of `test_cloud_disk.py` that runs in a mount namespace, on a small file system.

It writes more data than the disk can hold, and prints the results of these and later calls as JSON.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import oci

from tests.support.cloud_fixture import Clients, local_cloud

SIZE = "3m"
ENOUGH = 60


def _outcome(call: Callable[..., Any], *arguments: Any) -> list[Any]:
    try:
        call(*arguments)
    except oci.exceptions.ServiceError as error:
        return [error.status, error.code, error.message]
    return [200]


def main(folder: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], check=True)
    with local_cloud(folder / "cloud") as cloud:
        clients = Clients(cloud)
        here = (cloud.namespace, "data")
        clients.storage.create_bucket(here[0], {"name": here[1], "compartmentId": cloud.compartment})
        details = {"compartmentId": cloud.compartment, "cidrBlocks": ["10.0.0.0/16"]}
        puts: list[list[Any]] = []
        made: list[list[Any]] = []
        while len(puts) < ENOUGH and (not puts or puts[-1] == [200]):
            puts.append(_outcome(clients.storage.put_object, *here, f"o{len(puts)}", b"x" * 100_000))
        while len(made) < 1000 and (not made or made[-1] == [200]):
            made.append(_outcome(clients.network.create_vcn, details))
        stored = [item.name for item in clients.storage.list_objects(*here, limit=1000).data.objects]
        listed = oci.pagination.list_call_get_all_results(clients.network.list_vcns, cloud.compartment).data
        (folder / "cloud" / "objects" / sorted(path.name for path in (folder / "cloud" / "objects").iterdir() if
         path.is_file())[0]).unlink()  # room from elsewhere, as whoever cleans up makes it  # fmt: skip
        told = {
            "puts": puts, "made": made, "stored": len(stored), "vcns": len(listed),
            "incoming": len(list((folder / "cloud" / "objects" / "incoming").iterdir())),
            "after": _outcome(clients.network.create_vcn, details),
            "vcns after": len(clients.network.list_vcns(cloud.compartment, limit=1000).data),
            "tracebacks": (folder / "cloud" / "server.log").read_text().count("Traceback"),
        }  # fmt: skip
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
