# SPDX-License-Identifier: Apache-2.0
"""Runs unchanged commands of the `oci` CLI, in forks of a process that has imported it already.

The Python of the clients' environment runs it. Each input line is a JSON list of arguments; each output line has the
exit code and the output.
"""

import json
import os
import sys
import tempfile
from typing import Any


def run(arguments: "list[str]", cli: Any) -> "dict[str, Any]":
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            os.dup2(output.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.argv = ["oci", *arguments]
            code = 1
            try:
                cli()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
                if isinstance(ended.code, str):
                    print(ended.code, file=sys.stderr)
            except Exception:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        errors.seek(0)
        return {"code": status, "output": output.read().decode(), "errors": errors.read().decode()}


def main() -> None:
    from oci_cli.cli import cli  # type: ignore[import-not-found]  # in the clients' environment only
    from oci_cli.dynamic_loader import load_service_from_command  # type: ignore[import-not-found]

    for line in sys.stdin:
        arguments = json.loads(line)
        load_service_from_command(["oci", *arguments])  # The command itself reads its name from sys.argv.
        print(json.dumps(run(arguments, cli)), flush=True)


if __name__ == "__main__":
    main()
