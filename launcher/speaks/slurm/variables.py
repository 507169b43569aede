# SPDX-License-Identifier: Apache-2.0
"""The variables of a batch script. What its `#SBATCH` lines asked for are variables of the job, by the names that Slurm
gives them, such as SLURM_NTASKS_PER_NODE. The others follow from them."""

from __future__ import annotations

import getpass
import json
import os
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from launcher.compatibility import shell_words
from launcher.document import Launch
from launcher.errors import LaunchError
from launcher.placeholders import Place
from launcher.retries import MAXIMUM_VARIABLE
from launcher.settings import number_setting
from launcher.speaks.slurm.programs import STATE
from launcher.speaks.slurm.steps import spread_tasks
from launcher.speaks.slurm.words import compress_counts

PROGRAMS = ("srun", "scontrol", "sbatch", "module")
PROGRAMS_FILE = str(Path(__file__).with_name("run.py"))
# As sbatch reads it: `--signal=B:USR1@120`.
_SIGNAL = "SBATCH_SIGNAL"
_LARGEST_ID = 0x03FFFFFF


def system_variables(launch: Launch, place: Place, environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The variables of the script, the same on every node but for its own state."""
    nodes, address = launch.nodes, place.addresses[0]
    per_node, asked = _read_count(environment, "SLURM_NTASKS_PER_NODE"), _read_count(environment, "SLURM_NTASKS")
    tasks = asked or nodes * (per_node or 1)
    layout = spread_tasks(tasks, [per_node or tasks] * nodes)
    each = _read_count(environment, "SLURM_CPUS_PER_TASK") or 1
    cpus = [count * each for count in layout]
    start = f"{launch.stack}/{launch.run}/{launch.attempt}/{launch.folder or ''}"
    job_id = str(zlib.crc32(start.encode()) % _LARGEST_ID + 1)
    found = {
        "SLURMD_NODENAME": address,
        "SLURM_CLUSTER_NAME": "trainyard",
        "SLURM_CONF": "/etc/slurm/slurm.conf",
        "SLURM_CPUS_ON_NODE": str(cpus[0]),
        "SLURM_GTIDS": "0",
        "SLURM_JOBID": job_id,
        "SLURM_JOB_CPUS_PER_NODE": compress_counts(cpus),
        "SLURM_JOB_GID": str(os.getgid()),
        "SLURM_JOB_ID": job_id,
        "SLURM_JOB_NAME": launch.job,
        "SLURM_JOB_NODELIST": ",".join(place.addresses),
        "SLURM_JOB_NUM_NODES": str(nodes),
        "SLURM_JOB_PARTITION": "trainyard",
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_USER": _user_name(),
        "SLURM_LOCALID": "0",
        "SLURM_NNODES": str(nodes),
        "SLURM_NODEID": "0",
        "SLURM_NODELIST": ",".join(place.addresses),
        "SLURM_NODE_ALIASES": "(null)",
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_PROCID": "0",
        "SLURM_SUBMIT_DIR": folder,
        "SLURM_SUBMIT_HOST": address,
        "SLURM_TASKS_PER_NODE": compress_counts(layout),
        "SLURM_TOPOLOGY_ADDR": address,
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        "SLURM_WORKING_CLUSTER": "trainyard:127.0.0.1:6817:9728:109",
    }
    if asked or per_node:
        found["SLURM_NTASKS"] = found["SLURM_NPROCS"] = str(tasks)
    if "SLURM_ARRAY_TASK_ID" in environment:
        found["SLURM_ARRAY_JOB_ID"] = str(zlib.crc32(f"{launch.stack}/{launch.job}".encode()) % _LARGEST_ID + 1)
    if "SLURM_GPUS_ON_NODE" in environment:
        found["SLURM_JOB_GPUS"] = ",".join(map(str, range(_read_count(environment, "SLURM_GPUS_ON_NODE"))))
    if place.life:
        found["SLURM_RESTART_COUNT"] = str(place.life)
    minutes = number_setting(environment, MAXIMUM_VARIABLE, 0)
    state = {
        "job": launch.job,
        "addresses": place.addresses,
        "rank": launch.rank,
        "layout": layout,
        "cpus": cpus,
        "folder": place.scratch,
        "signal": environment.get(_SIGNAL, ""),
        "end": time.time() + minutes * 60 if minutes else 0,
    }
    # torchrun tells other nodes this machine's host name, which they could not resolve. By this variable, which stands
    # for its option `--local_addr`, it tells them the address.
    own = {STATE: json.dumps(state), "PET_LOCAL_ADDR": place.address}
    # What the job itself says stays.
    return {**own, **{key: environment.get(key, value) for key, value in found.items()}}


def wrap_script(words: Sequence[str]) -> list[str]:
    """A shell sets what is known only then, and becomes the batch script. It starts in a millisecond, and a Python in
    twenty, which only a script that asked for a signal needs."""
    program = shell_words((sys.executable, "-I", "-S", PROGRAMS_FILE, "batch"))
    start = f'[ -z "${_SIGNAL}" ] || exec {program} "$@"; export SLURM_TASK_PID=$$; exec "$@"'
    return ["/bin/sh", "-c", start, "batch", *words]


def _read_count(environment: Mapping[str, str], name: str) -> int:
    """A number of the job's variables; 0 if it does not say one."""
    text = environment.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise LaunchError(f"{name} is {text!a}, which is not a whole number: correct it in the job's `env`")
    return int(text or 0)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return str(os.getuid())
