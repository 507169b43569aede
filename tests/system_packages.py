# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.system_packages`: checks before the tests whether their system packages are installed. Root installs
missing packages. For other users, it names them once, with the tests that are skipped.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LIST = Path(__file__).with_name("apt-packages.txt")
# What the project itself fetches where the system lacks it.
_NOTHING = "none:"
_QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def packages() -> Mapping[str, str]:
    """What is skipped without each package, by its Debian name."""
    lines = [line for line in LIST.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {name.strip(): skipped.strip() for name, _, skipped in (line.partition("#") for line in lines)}


def missing() -> Mapping[str, str]:
    """The packages that are not installed. None where the system is none of Debian's."""
    if not shutil.which("dpkg-query"):
        return {}
    asked = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\\n"], capture_output=True, text=True
    )
    installed = {line.split()[0] for line in asked.stdout.splitlines() if line.endswith(" installed")}
    return {name: skipped for name, skipped in packages().items() if name not in installed}


def install(names: Mapping[str, str]) -> None:
    print(f"trainyard: installing what the tests use of the system: {', '.join(names)} (about 150 MB)", flush=True)
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *names]):
        done = subprocess.run(
            ["apt-get", *words], env={**os.environ, **_QUIET}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode:
            print(done.stdout, file=sys.stderr)
            return


def main() -> None:
    if (absent := missing()) and os.geteuid() == 0:
        install(absent)
        absent = missing()
    if absent := {name: skipped for name, skipped in absent.items() if not skipped.startswith(_NOTHING)}:
        print("trainyard: not installed here, so these tests are skipped (as root, `make test` installs them):")
        width = max(map(len, absent))
        for name, skipped in absent.items():
            print(f"  {name:{width}}  {skipped}")


if __name__ == "__main__":
    main()
