# SPDX-License-Identifier: Apache-2.0
"""What tells one start of a run from another: its folder in the bucket bears the start's own name.

A run that is started again has the same job, run and attempt. Its nodes must not meet those of the earlier start, nor
mix their outputs with them, so peers, status and output of each start lie in a folder of that start alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from launcher.document import Launch, LaunchError

MAIN_VARIABLE, OWN_VARIABLE = "MAIN_JOB_RUN_OCID", "JOB_RUN_OCID"
# OpenPAI's name of a job, and which attempt of it this is, as its controller tells each container.
_PAI_JOB, _PAI_ATTEMPTS = "PAI_JOB_NAME", ("FC_FRAMEWORK_ATTEMPT_INSTANCE_UID", "FC_FRAMEWORK_ATTEMPT_ID")
# As much of an OCID as consoles show and no two job runs share.
_LETTERS = 12


def name_of(launch: Launch, environment: Mapping[str, str]) -> str:
    """The start's name, alike on all its nodes; empty where nothing but the attempt tells starts apart."""
    source = launch.peers["from"]
    if source == "openpai":
        return _of_openpai(environment)
    if source == "cluster-metadata":
        return of_job_run(environment.get(OWN_VARIABLE, ""))
    return _of_main(launch, environment) if source == "bucket" else ""


def _of_main(launch: Launch, environment: Mapping[str, str]) -> str:
    main = environment.get(MAIN_VARIABLE) or ("" if launch.rank else environment.get(OWN_VARIABLE, ""))
    if not main and launch.nodes > 1:
        raise LaunchError(
            f"{MAIN_VARIABLE} is not set, so this node could meet nodes of an earlier start: start the run through its"
            " stack, or give every node the OCID of rank 0's job run in this variable"
        )
    return of_job_run(main)


def of_job_run(ocid: str) -> str:
    """The end of the main job run's OCID, by which people find one from the other."""
    return ocid.rpartition(".")[2][-_LETTERS:]


def _of_openpai(environment: Mapping[str, str]) -> str:
    attempt = next((environment[name] for name in _PAI_ATTEMPTS if environment.get(name)), "")
    job = environment.get(_PAI_JOB, "")
    return hashlib.sha256(f"{job}\n{attempt}".encode()).hexdigest()[:_LETTERS] if job else ""


def placed(launch: Launch, environment: Mapping[str, str]) -> Launch:
    """The same launch with the folder of its start in place of the attempt's."""
    if launch.folder is None:
        return launch
    name = name_of(launch, environment)
    return replace(launch, folder=f"{launch.folder}/{name}") if name else launch
