# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.flows.hosts.machine_work FOLDER`: the root user of a machine tries to escape: at the first boot, and
at the second boot by links that it left on its disk. Prints JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from components.values.security_rules import DIRECTIONS
from localcloud.aws.machines import SecurityGroupRules
from tests.flows.hosts.ways_out import WAYS, Way, try_all
from tests.support.aws_instances import GROUP, Data, data_centre
from tests.support.security_rules import group_rule

# Attempts that are no escape for the root of a machine, because their effect stays inside.
AT_HOME = {
    "read the machine's shadow file", "write to /etc", "write to the user's home", "write to the launcher",
    "make a setuid program", "become root", "take another root", "reach a socket by its file", "kill the first process",
}  # fmt: skip
OF_ROOT = (
    Way("make mounts of its own", "return call('unshare', 0x00020000)", "it may not mount"),
    Way("mount memory", "return call('mount', b'none', b'/mnt', b'tmpfs', 0, None)", "it may not mount"),
    Way("take a file of the machine below", "os.chown('/usr/bin/env', 0, 0); return True", "its file system"),
    Way("get all capabilities", "return call('capset', (ctypes.c_uint32 * 2)(0x20080522, 0),"
        " (ctypes.c_uint32 * 6)(*[0xffffffff] * 6))", "what was dropped does not come back"),
    Way("be root where programs are started anew", "return '00000000000400fb' not in subprocess.run(['grep', 'CapEff',"
        " '/proc/self/status'], capture_output=True, text=True).stdout", "a program gives no more rights"),
)  # fmt: skip
TRIED = (*(way for way in WAYS if way.name not in AT_HOME), *OF_ROOT)


async def work(folder: Path) -> dict[str, Any]:
    ingress, egress = (group_rule("-1", "0.0.0.0/0", direction=direction) for direction in DIRECTIONS)
    async with data_centre(folder / "machines") as data:
        data.reports.group = SecurityGroupRules(GROUP, "open", (ingress,), (egress,))
        # The script is in a file: its text must not be on a command line, because the attempts search command lines.
        machine = data.start(
            1, "#cloud-config\n" + json.dumps({"write_files": [{"path": "/root/ways.py", "content": try_all(TRIED)}]})
        )
        await data.heard("agent", machine.id)
        variables = {name: value for name, value in os.environ.items() if name.startswith("WAY_")}
        exports = [f"export {name}='{value}'" for name, value in variables.items()]
        _, tried, errors = await data.run(machine, *exports, "export JOB_RUN_OCID=none", "python3 /root/ways.py")
        return {"tried": tried, "errors": errors, "second": await _second_boot(data, machine.id, folder / "outside")}


async def _second_boot(data: Data, instance: str, outside: Path) -> dict[str, Any]:
    """Puts links at paths where the hosts mount folders at the next boot: the interpreter's, in /run, in /var."""
    outside.mkdir(mode=0o777)
    machine = data.reports.living[instance]
    inside = Path(sys.prefix).resolve()
    # The first folder on the interpreter's path that is on the machine's own disk, if it exists.
    top = Path("/", *inside.parts[1:3])
    links = [f"rm -rf /var/run /var/tmp; ln -s {outside} /var/run; ln -s {outside} /var/tmp; rm -rf /run/*"]
    links += [f"mv {top} {top}.moved; ln -s {outside} {top}; mkdir -p {outside}; ls -d {top}.moved"]
    moved = await data.run(machine, *links)
    data.reports.heard.clear()
    data.instances.stopped(instance)
    data.instances.started(machine)
    await data.until(lambda: data.reports.heard, "waited for the second boot")
    return {"moved": moved, "heard": data.reports.heard, "outside": sorted(os.listdir(outside)), "top": str(top)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(work(Path(sys.argv[1])))))
