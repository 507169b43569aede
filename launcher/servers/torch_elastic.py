# SPDX-License-Identifier: Apache-2.0
"""`torch_elastic.py ADDRESS RANK COMMAND…`: elastic torchrun, on nodes that cannot resolve each other's names.

torchrun sends the others this machine's host name, which only this machine can resolve. Here it sends the address
instead. torchrun orders the nodes by these texts, and the main node's address is written so that it comes first. So
rank 0 stays on the main node, which serves the rendezvous and is the one node that training needs.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
from runpy import run_module

_MAIN = "0"
# How long torchrun waits for more nodes once it has the smallest number, and how often it checks its processes.
_LAST_CALL_SECONDS, _LOOK_SECONDS = "10", "1"


def main(words: list[str]) -> None:
    address, rank, *options = words
    announced = _sortable_address(address) if rank == _MAIN else address
    # Its option for this, `--local_addr`, is not in every release.
    socket.getfqdn = lambda name="": announced
    serves = f"is_host={int(rank == _MAIN)},last_call_timeout={_LAST_CALL_SECONDS}"
    sys.argv = ["torchrun", "--rdzv_conf", serves, "--monitor_interval", _LOOK_SECONDS, *options]
    run_module("torch.distributed.run", run_name="__main__", alter_sys=True)


def _sortable_address(address: str) -> str:
    """The same address as one hexadecimal number, which sorts before every address of four decimal ones."""
    found = ipaddress.ip_address(address)
    return f"{int(found):#010x}" if found.version == 4 else address


if __name__ == "__main__":
    main(sys.argv[1:])
