# SPDX-License-Identifier: Apache-2.0
"""A pool of processes on several nodes, with the managers of Python's multiprocessing."""

import os
import queue
import socket
import sys
import threading
import time
from multiprocessing.managers import BaseManager

KEY = b"pool"
NUMBERS, SQUARES = queue.Queue(), queue.Queue()


class Pool(BaseManager):
    pass


def connected(address, port):
    Pool.register("numbers")
    Pool.register("squares")
    pool = Pool((address, int(port)), authkey=KEY)
    pool.connect()
    return pool.numbers(), pool.squares()


def work(numbers, squares, name):
    while True:
        number = numbers.get()
        time.sleep(0.01)
        squares.put((number * number, name))


def head(address, port):
    """Serves the queues. The head also computes, as in many clusters."""
    Pool.register("numbers", callable=lambda: NUMBERS)
    Pool.register("squares", callable=lambda: SQUARES)
    threading.Thread(target=work, args=(NUMBERS, SQUARES, "head"), daemon=True).start()
    Pool((address, int(port)), authkey=KEY).get_server().serve_forever()


def worker(address, port, own_address, own_port):
    time.sleep(float(os.environ["POOL_WARM_SECONDS"]))
    numbers, squares = connected(address, port)
    threading.Thread(target=work, args=(numbers, squares, own_address), daemon=True).start()
    with socket.create_server((own_address, int(own_port))) as server:
        while True:
            server.accept()[0].close()


if __name__ == "__main__":
    {"head": head, "worker": worker}[sys.argv[1]](*sys.argv[2:])
