# SPDX-License-Identifier: Apache-2.0
"""Debian's own Slurm on this machine: a controller, and several nodes that are processes beside one another. Its
packages are unpacked into the cache, and nothing is installed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from localcloud.environments import apt, cache
from tests.support.nodes import block
from tests.support.waiting import eventually

VERSION = "22.05.8"
PACKAGES = ("slurmctld", "slurmd", "slurm-client")
CPUS = 64
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_CONFIGURATION = """\
ClusterName=trainyard
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
PluginDir={libraries}/slurm-wlm
SlurmctldPort={port}
SlurmctldPidFile={folder}/controller.pid
SlurmctldLogFile={folder}/controller.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


class _Silent:
    def say(self, text: str) -> None:
        pass

    def update(self, text: str) -> None:
        pass


def fetched_slurm(may_fetch: bool) -> Path | None:
    """The folder of the unpacked packages; None if they are not there and may not be fetched."""
    folder = cache.environments_cache() / f"tests-slurm-{VERSION}"
    if not (folder / "ready").exists() and may_fetch:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with cache.lock_environment(folder, lambda text: None):
            if not (folder / "ready").exists():
                cache.clear_folder(folder)
                folder.mkdir(parents=True)
                apt.fetch_debian_packages(PACKAGES, folder, _Silent())
                (folder / "ready").touch()
    return folder if (folder / "ready").exists() else None


@dataclass(frozen=True)
class SlurmCluster:
    """A running cluster. Scripts run in the folder of the one that is submitted."""

    packages: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        libraries = self.packages / _LIBRARIES
        return {
            "PATH": f"{self.packages}/usr/bin:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(self.folder),
            "USER": "root", "SLURM_CONF": str(self.folder / "slurm.conf"),
            "LD_LIBRARY_PATH": f"{libraries}/slurm-wlm:{libraries}",
        }  # fmt: skip

    def call(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            words,
            env=self.environment,
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def run_script(self, script: Path) -> str:
        """Submits a script, waits for the end of its jobs, and returns what they printed."""
        self.call("sbatch", "--wait", f"--output={script}.%j.out", script.name, cwd=script.parent)
        return "".join(file.read_text("utf-8") for file in script.parent.glob(f"{script.name}.*.out"))


@contextmanager
def slurm_cluster(packages: Path, folder: Path, nodes: int = 3) -> Iterator[SlurmCluster]:
    """A cluster whose processes end with the block."""
    cluster = SlurmCluster(packages, folder)
    (folder / "state").mkdir(parents=True)
    host, (first, _) = socket.gethostname(), block(nodes + 1)
    libraries = packages / _LIBRARIES
    lines = [_CONFIGURATION.format(host=host, libraries=libraries, folder=folder, port=first)]
    for number in range(1, nodes + 1):
        (folder / f"spool.node{number}").mkdir()
        where = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={first + number}"
        lines.append(f"NodeName=node{number} {where} CPUs={CPUS} RealMemory=900000\n")
    (folder / "slurm.conf").write_text("".join(lines), "utf-8")
    programs = packages / "usr/sbin"
    try:
        cluster.call(str(programs / "slurmctld-wlm"), "-c")
        for number in range(1, nodes + 1):
            step = str(programs / "slurmstepd-wlm")
            cluster.call(str(programs / "slurmd-wlm"), "-c", "-N", f"node{number}", "-d", step)
        eventually(
            lambda: cluster.call("sinfo", "-h", "-t", "idle", "-o", "%D").strip(), lambda said: said == str(nodes)
        )
        yield cluster
    finally:
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), signal.SIGTERM)
        shutil.rmtree(folder / "state", ignore_errors=True)
