# SPDX-License-Identifier: Apache-2.0
"""`python -m trainyard.engine path|tools`: prints a folder on stdout, and everything else on stderr."""

import argparse
import os
import sys

from launcher.escaping import terminal_lines
from trainyard.engine.obtain import engine_folder
from trainyard.engine.tools import tools_home, write_tools
from trainyard.engine.versions import EngineError


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trainyard.engine", description="The Pulumi engine for this machine."
    )
    what = parser.add_subparsers(dest="command", required=True)
    what.add_parser("path", help="print the folder of the `pulumi` to use; get the engine first if there is none")
    what.add_parser("tools", help="write the plugins of local stacks and print their folder")
    command = parser.parse_args().command
    try:
        folder = engine_folder()
        if command == "tools":
            folder = write_tools(tools_home(os.environ), folder, os.environ)
    except EngineError as problem:
        print(terminal_lines(f"trainyard: no Pulumi engine: {problem}"), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("trainyard: stopped; run the same command again to continue", file=sys.stderr)
        return 130
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
