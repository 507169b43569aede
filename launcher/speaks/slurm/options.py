# SPDX-License-Identifier: Apache-2.0
"""The options of srun. Most change nothing here, because a node has one job, and gives it all that it has."""

from __future__ import annotations

from collections.abc import Sequence

from launcher.speaks.slurm.words import SlurmError

_VALUES = {
    "-A": "account", "-b": "begin", "-c": "cpus-per-task", "-d": "dependency", "-D": "chdir", "-e": "error",
    "-G": "gpus", "-i": "input", "-J": "job-name", "-L": "licenses", "-m": "distribution", "-M": "clusters",
    "-n": "ntasks", "-N": "nodes", "-o": "output", "-p": "partition", "-q": "qos", "-r": "relative", "-t": "time",
    "-T": "threads", "-w": "nodelist", "-W": "wait", "-x": "exclude", "-B": "extra-node-info", "-C": "constraint",
    "-F": "nodefile", "-S": "core-spec",
}  # fmt: skip
_LONG_VALUES = frozenset({
    *_VALUES.values(), "accel-bind", "acctg-freq", "bb", "bbf", "cluster-constraint", "comment", "compress",
    "container", "container-env", "container-image", "container-mounts", "container-name", "container-workdir",
    "cores-per-socket", "cpu-bind", "cpu-freq", "cpu_bind", "cpus-per-gpu", "deadline", "delay-boot", "epilog",
    "export", "gid", "gpu-bind", "gpu-freq", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
    "gres-flags", "het-group", "hint", "jobid", "mail-type", "mail-user", "max-threads", "mcs-label", "mem",
    "mem-bind", "mem-per-cpu", "mem-per-gpu", "mem_bind", "mincpus", "mpi", "msg-timeout", "network",
    "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-tres", "power",
    "priority", "profile", "prolog", "reservation", "signal", "slurmd-debug", "sockets-per-node", "switches",
    "task-epilog", "task-prolog", "thread-spec", "threads-per-core", "time-min", "tmp", "tres-bind", "uid",
    "wait-all-nodes", "wckey",
})  # fmt: skip
# A value, if there is one, follows `=`.
_FLAGS = {
    "-E": "preserve-env", "-H": "hold", "-I": "immediate", "-K": "kill-on-bad-exit", "-k": "no-kill", "-l": "label",
    "-O": "overcommit", "-Q": "quiet", "-s": "oversubscribe", "-u": "unbuffered", "-v": "verbose",
    "-X": "disable-status", "-Z": "no-allocate",
}  # fmt: skip
_LONG_FLAGS = frozenset({
    *_FLAGS.values(), "bcast", "container-mount-home", "container-readonly", "container-remap-root",
    "container-save", "container-writable", "contiguous", "exact", "exclusive", "interactive", "multi-prog", "nice",
    "no-container-entrypoint", "no-container-mount-home", "no-container-remap-root", "overlap", "propagate", "pty",
    "reboot", "send-libs", "share", "spread-job", "test-only", "use-min-nodes", "whole",
})  # fmt: skip
_REFUSED = {
    "multi-prog": "start one command for all tasks, which reads SLURM_PROCID",
    "het-group": "use a job of the stack for each part",
    "pty": "nobody is at a terminal",
}


def parse_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The options by their long names, and the command. A flag without a value is empty."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            given, joined, value = word[2:].partition("=")
            name = _whole_name(given)
            if joined or name in _LONG_FLAGS:
                found[name] = value
            elif rest:
                found[name] = rest.pop(0)
            else:
                raise SlurmError(f"option '--{name}' requires an argument")
            continue
        letters = word[1:]
        while letters:
            letter, letters = "-" + letters[0], letters[1:]
            if letter in _FLAGS:
                found[_FLAGS[letter]] = ""
            elif letter in _VALUES and (letters or rest):
                found[_VALUES[letter]], letters = letters or rest.pop(0), ""
            else:
                raise SlurmError(f"invalid option -- '{letter[1:]}'")
    for name, remedy in _REFUSED.items():
        if name in found:
            raise SlurmError(f"--{name} does not work here: {remedy}")
    if found.get("mpi", "none") not in ("none", "list", "openmpi"):
        raise SlurmError("--mpi={} does not work here: tasks have no PMI".format(found["mpi"]))
    return found, rest


def _whole_name(given: str) -> str:
    """The name of a long option. Slurm takes the beginning of one, too."""
    names = {*_LONG_VALUES, *_LONG_FLAGS}
    fitting = [given] if given in names else [name for name in names if name.startswith(given)]
    if len(fitting) != 1:
        raise SlurmError(f"unrecognized option '--{given}'")
    return fitting[0]
