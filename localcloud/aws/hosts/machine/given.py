# SPDX-License-Identifier: Apache-2.0
"""The paths inside a machine that only the cloud writes to."""

from __future__ import annotations

from pathlib import Path

PROGRAMS, PACKAGE = "/.trainyard", "localcloud.aws.hosts.machine"
# Starts a module of this package, in an interpreter that otherwise has only the standard library.
START = (
    "import sys; from importlib import import_module; sys.path.insert(0, sys.argv[1]);"
    " sys.exit(import_module(sys.argv[2]).main(sys.argv[3:]))"
)
GIVEN = f"{PROGRAMS}/given"
BOOT, COMMANDS = Path(GIVEN, "boot.json"), Path(GIVEN, "commands")
