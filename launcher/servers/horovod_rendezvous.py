# SPDX-License-Identifier: Apache-2.0
"""`horovod_rendezvous.py ADDRESS PORT HOST:SLOTS,…`: Horovod's rendezvous, on an address and a port of our choice.

Run by the image's Python, which has Horovod; the launcher itself imports nothing of it.
"""

from __future__ import annotations

import sys


def main(arguments: list[str]) -> int:
    """Serves until it is killed. Horovod's own `start()` would choose a port itself and listen on all addresses."""
    from horovod.runner.common.util.hosts import get_host_assignments, parse_hosts  # type: ignore[import-not-found,unused-ignore]
    from horovod.runner.http.http_server import RendezvousHandler, RendezvousHTTPServer  # type: ignore[import-not-found,unused-ignore]

    address, port, described = arguments
    hosts = parse_hosts(described)
    slots = sum(host.slots for host in hosts)
    server = RendezvousHTTPServer((address, int(port)), RendezvousHandler, 0)
    server.init(get_host_assignments(hosts, slots))
    print(f"Horovod's rendezvous serves {slots} processes at {address}:{port}", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
