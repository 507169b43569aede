# SPDX-License-Identifier: Apache-2.0
"""Parameter servers and workers as TensorFlow's scripts on OpenPAI find one another: by lists of hosts and ports, the
name of the role and the task's index. A server ends when the job is complete: when all workers are."""

import argparse
import json
import time
from multiprocessing.managers import BaseManager

import digits
import torch

KEY = b"only this job's tasks know each other"


class Variables:
    """What a server holds."""

    def __init__(self) -> None:
        self._values = [value.tolist() for value in digits.network().parameters()]

    def read(self):
        return self._values

    def change(self, differences) -> None:
        pairs = zip(self._values, differences)  # noqa: B905 - for Python 3.6
        self._values = [(torch.tensor(value) + torch.tensor(one)).tolist() for value, one in pairs]


class Server(BaseManager):
    """Serves the variables, or reaches those of another task."""


def serve(address) -> None:
    variables = Variables()
    Server.register("variables", callable=lambda: variables)
    Server(address, KEY).get_server().serve_forever()


def reach(address):
    """The server's variables. It may begin later than this worker."""
    Server.register("variables")
    server = Server(address, KEY)
    while True:
        try:
            server.connect()
        except ConnectionError:
            time.sleep(0.2)
        else:
            return server.variables()


def work(index: int, address, workers: int) -> None:
    variables, model = reach(address), digits.network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        before = [torch.tensor(value) for value in variables.read()]
        for own, value in zip(model.parameters(), before):  # noqa: B905 - for Python 3.6
            own.data.copy_(value)
        loss = digits.step(model, optimizer, *digits.batch(100 * index + epoch))
        pairs = zip(model.parameters(), before)  # noqa: B905 - for Python 3.6
        variables.change([(own.detach() - value).tolist() for own, value in pairs])
        digits.tell(epoch + 1, loss)
    digits.keep(json.dumps({"workers": workers}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job_name", choices=("ps", "worker"), required=True)
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    options = parser.parse_args()
    servers, workers = options.ps_hosts.split(","), options.worker_hosts.split(",")
    chosen = servers[options.task_index if options.job_name == "ps" else options.task_index % len(servers)]
    host, _, port = chosen.partition(":")
    if options.job_name == "ps":
        serve((host, int(port)))
    else:
        work(options.task_index, (host, int(port)), len(workers))


if __name__ == "__main__":
    main()
