# SPDX-License-Identifier: Apache-2.0
"""A PyTorchJob, TFJob or MPIJob of Kubeflow as a job of the framework that starts the same processes. A TrainJob, whose
command is often in its runtime, is in trainyard/bring/kubernetes_trainer.py."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.tables import table
from components.platform.new_stacks import MachineNeeds
from trainyard.bring.keys import judge_document
from trainyard.bring.kubernetes_pods import (
    TrainingContainer,
    note_suspended,
    note_volumes,
    read_container_variables,
    read_machine,
    training_container,
)
from trainyard.bring.kubernetes_programs import StartedProgram, read_started_program
from trainyard.bring.kubernetes_trainer import is_trainer_object, read_train_job
from trainyard.bring.kubernetes_work import MOST, BroughtWork, brought_job
from trainyard.bring.model import BroughtJob
from trainyard.bring.notes import CHOICE, IMPOSSIBLE, LEFT_OUT, MISSING, SENSELESS, NoteTaker
from trainyard.bring.yaml_text import YamlDocument

# Kind -> where its replicas are, and the names of the container that trains.
_KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("pytorch",)),
    "TFJob": ("tfReplicaSpecs", ("tensorflow",)),
    "MPIJob": ("mpiReplicaSpecs", ("mpi", "launcher", "worker")),
}
TRAINING_KINDS = frozenset({*_KINDS, "TrainJob"})
# Replicas that may have a command of their own, and the role that they are.
_OWN_COMMANDS = {"Worker": "worker", "PS": "ps"}
_ROLES = ("Master", "Chief", "Launcher", "Worker", "PS", "Evaluator")


def is_kubernetes_object(document: YamlDocument) -> bool:
    return "apiVersion" in document.table() and "kind" in document.table()


def read_kubernetes_job(documents: Sequence[YamlDocument]) -> tuple[BroughtJob, NoteTaker]:
    """The first training job of the documents. BringError if there is none that trains here."""
    taker = NoteTaker(documents[0].name)
    jobs = [document for document in documents if document.text("kind") in TRAINING_KINDS]
    taken = jobs[:1]
    if jobs and jobs[0].text("kind") == "TrainJob":
        job, used = read_train_job(jobs[0], documents, taker)
        taken += used
    elif jobs:
        taker.file = jobs[0].name
        job = _TrainingJobReader(jobs[0], taker).read()
    _note_others(documents, taken, taker)
    if not jobs:
        kinds = ", ".join(sorted({document.text("kind")[:40] for document in documents}))
        if any(is_trainer_object(document) for document in documents):
            message = "it is the runtime of TrainJobs, and none of them is there"
            raise taker.refuse(MISSING, 0, message, "name the file of the TrainJob, too")
        message = f"it has no job that trains ({kinds}), which are {', '.join(sorted(TRAINING_KINDS))}"
        raise taker.refuse(SENSELESS, documents[0].line("kind"), message, "name the file of the job")
    return job, taker


def _note_others(documents: Sequence[YamlDocument], taken: Sequence[YamlDocument], taker: NoteTaker) -> None:
    """Objects beside the job. Nothing is made of them."""
    rows: Mapping[str, Mapping[str, Any]] = table("bring/kubernetes")["others"]
    for document in documents:
        if document in taken:
            continue
        kind, line = document.text("kind"), document.line("kind")
        shown = f"the {kind[:40] or 'document without a kind'} `{document.text('metadata', 'name')[:40]}`"
        taker.file = document.name
        if "refused" in rows.get(kind, {}):
            raise taker.refuse(IMPOSSIBLE, line, f"{shown} cannot be brought: {rows[kind]['refused']}", "remove it")
        if kind in rows:
            taker.judge_key(rows, kind, shown, line)
        elif kind in TRAINING_KINDS:
            message = f"{shown} was left out: one call brings one job"
            taker.note(LEFT_OUT, line, message, "call `trainyard convert` with a file that has only this one")
        else:
            taker.note(LEFT_OUT, line, f"{shown} was left out: it is no job", "nothing, if the job needs none of it")


class _TrainingJobReader:
    def __init__(self, document: YamlDocument, taker: NoteTaker) -> None:
        self._document, self._taker, self._kind = document, taker, document.text("kind")
        self._replicas, self._names = _KINDS[self._kind]
        specs = document.table("spec", self._replicas)
        self._roles = [name for name in _ROLES if isinstance(specs.get(name), Mapping)]
        self._containers: dict[str, TrainingContainer] = {}

    def read(self) -> BroughtJob:
        self._judge()
        if not self._roles:
            message = f"it has no replicas (`spec.{self._replicas}`)"
            raise self._taker.refuse(SENSELESS, self._document.line("spec"), message, "write them")
        main = self._document.text("spec", "mainContainer")
        for role in self._roles:
            template = ("spec", self._replicas, role, "template")
            names = (main, *self._names) if main else self._names
            self._containers[role] = training_container(self._document, self._taker, template, names)
            note_volumes(self._containers[role])
        return {"PyTorchJob": self._pytorch, "TFJob": self._tensorflow, "MPIJob": self._mpi}[self._kind]()

    def _judge(self) -> None:
        catalog = table("bring/kubernetes")
        rows: dict[str, Mapping[str, Any]] = {**catalog["keys"], **catalog["training"]}
        for role in _ROLES:
            place = f"spec.{self._replicas}.{role}"
            rows |= {f"{place}.{key}": row for key, row in catalog["replica"].items()}
            rows |= {f"{place}.template.{key}": row for key, row in catalog["pod"].items()}
        judge_document(self._document, rows, self._taker)
        if self._document.at("spec", "runPolicy", "suspend") is True:
            note_suspended(self._document, ("spec", "runPolicy", "suspend"), self._taker)

    def _count(self, role: str) -> int:
        path = ("spec", self._replicas, role, "replicas")
        return self._number(*path, default=1) if role in self._roles else 0

    def _number(self, *path: str | int, default: int = 0) -> int:
        value = self._document.at(*path)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
            message = f"`{'.'.join(map(str, path))}` is not a whole number up to {MOST:,}"
            raise self._taker.refuse(SENSELESS, self._document.line(*path), message, "write a number")
        return value

    def _pytorch(self) -> BroughtJob:
        nodes = self._count("Master") + self._count("Worker")
        leader = self._containers["Master" if "Master" in self._roles else self._roles[0]]
        program = self._program(leader, nodes)
        framework = program.framework or "pytorch"
        processes, options = program.processes, dict[str, Any]()
        elastic = ("spec", "elasticPolicy")
        least = self._number(*elastic, "minReplicas")
        if self._document.table(*elastic):
            framework = "torchrun" if program.framework == "torchrun" else framework
            if framework == "torchrun" and least and least < nodes:
                options |= {"elastic": True, "minNodes": least}
            if restarts := self._number(*elastic, "maxRestarts"):
                options |= {"restarts": restarts} if framework == "torchrun" else {}
        if processes is None and framework != "pytorch":
            text = self._per_node()
            processes = int(text) if text.isdigit() else 0 if text in ("gpu", "auto") else None
        return self._work(leader, program, framework, nodes, processes, options)

    def _tensorflow(self) -> BroughtJob:
        if "Evaluator" in self._roles:
            line = self._document.line("spec", self._replicas, "Evaluator")
            message = "the Evaluator was left out: nodes of a run train, or serve those that do"
            self._taker.note(LEFT_OUT, line, message, "evaluate in the chief, or in a run of its own")
        chiefs, workers, servers = (
            self._count("Chief") + self._count("Master"),
            self._count("Worker"),
            self._count("PS"),
        )
        leader = next(
            self._containers[role] for role in ("Chief", "Master", "Worker", *self._roles) if role in self._roles
        )
        program = self._program(leader, chiefs + workers + servers)
        if servers:
            roles = {"main": 1, "worker": max(1, workers - (0 if chiefs else 1)), "ps": servers}
            strategy = "parameter-server"
            if not chiefs:
                message = "it has no Chief, so the first Worker is the chief, which hands out steps"
                self._taker.note(CHOICE, self._document.line("spec", self._replicas), message, "see `roles`")
        else:
            total = chiefs + workers
            roles = {"main": 1, **({"worker": total - 1} if total > 1 else {})}
            strategy = "multi-worker-mirrored" if total > 1 else "mirrored"
        return self._work(leader, program, "tensorflow", 0, None, {}, roles, strategy)

    def _mpi(self) -> BroughtJob:
        if "Launcher" not in self._roles:
            message = "it has no Launcher, whose command starts the processes"
            raise self._taker.refuse(SENSELESS, self._document.line("spec", self._replicas), message, "write it")
        nodes = max(1, self._count("Worker") + (self._document.at("spec", "runLauncherAsWorker") is True))
        leader = self._containers["Launcher"]
        program = self._program(leader, nodes)
        if program.framework != "horovod":
            message = "its command starts no Python script by mpirun, and no stack starts other programs by MPI"
            raise self._taker.refuse(IMPOSSIBLE, leader.line("command"), message, "start the script by torchrun")
        message = "mpirun started the processes there, and Horovod starts them here: the script has to use Horovod"
        self._taker.note(
            CHOICE, leader.line("command"), message, "use the framework of the script, if it is another one"
        )
        processes = program.processes or self._number("spec", "slotsPerWorker", default=1)
        machine = self._containers.get("Worker", leader)
        return self._work(leader, program, "horovod", nodes, processes, {}, machine=machine)

    def _program(self, container: TrainingContainer, nodes: int) -> StartedProgram:
        return read_started_program(
            container.words(), container.values, max(1, nodes), self._per_node(), self._document.name
        )

    def _per_node(self) -> str:
        elastic = self._document.text("spec", "elasticPolicy", "nProcPerNode")
        return self._document.text("spec", "nprocPerNode") or elastic

    def _work(
        self, leader: TrainingContainer, program: StartedProgram, framework: str, nodes: int, processes: int | None,
        options: Mapping[str, Any], roles: Mapping[str, int] | None = None, strategy: str = "",
        machine: TrainingContainer | None = None,
    ) -> BroughtJob:  # fmt: skip
        policy = ("spec", "runPolicy")
        seconds = self._number(*policy, "activeDeadlineSeconds") or self._number("spec", "activeDeadlineSeconds")
        container = machine or leader
        work = BroughtWork(
            framework=framework,
            strategy=strategy,
            roles=roles or {"main": 1, **({"worker": nodes - 1} if nodes > 1 else {})},
            program=program,
            processes=processes,
            options=options,
            environment=self._environment(framework, strategy),
            needs=self._needs(machine),
            commands={} if machine else self._own_commands(leader, framework, max(1, nodes)),
            minutes=math.ceil(seconds / 60),
            retries=self._number(*policy, "backoffLimit") or self._number("spec", "backoffLimit"),
            image=(container.image() or leader.image(), container.line("image")),
            command_line=leader.line("command") if leader.words() else leader.line(),
            machine_line=container.line("resources"),
        )
        self._note_images(leader)
        name = self._document.text("metadata", "name") or self._document.text("metadata", "generateName")
        return brought_job(name, work, self._taker)

    def _needs(self, only: TrainingContainer | None) -> MachineNeeds:
        """One machine for all nodes: the largest that one of them needs."""
        containers = [only] if only else [self._containers[role] for role in self._roles if role != "Evaluator"]
        needs = [read_machine(container, (*container.path, "resources")) for container in containers]
        if len(set(needs)) > 1:
            message = "its replicas need different machines, and all nodes have the same"
            self._taker.note(CHOICE, self._document.line("spec", self._replicas), message, "choose the `shape`")
        return max(needs, key=lambda machine: (machine.gpus, machine.cpus, machine.memory_gb))

    def _environment(self, framework: str, strategy: str) -> Mapping[str, str]:
        """The variables of all containers. Where two say different values, that of the first counts."""
        found: dict[str, str] = {}
        for role, container in self._containers.items():
            own = read_container_variables(self._document, (*container.path, "env"), self._taker, framework, strategy)
            for name, value in own.items():
                if found.setdefault(name, value) != value:
                    message = f"`{name}` of {role} was left out: other nodes have another value"
                    self._taker.note(LEFT_OUT, container.line("env"), message, "write it under `env` of the role")
        return found

    def _note_images(self, leader: TrainingContainer) -> None:
        for role, container in self._containers.items():
            if container.image() not in ("", leader.image()) and role != "Evaluator":
                message = f"the image of {role}, {container.image()[:80]}, was left out: all nodes have the same"
                self._taker.note(LEFT_OUT, container.line("image"), message, "make one image for all roles")

    def _own_commands(self, leader: TrainingContainer, framework: str, nodes: int) -> dict[str, str]:
        """The commands of roles whose nodes start something else than the leader."""
        found: dict[str, str] = {}
        leading = self._program(leader, nodes).command
        for role, container in self._containers.items():
            if role not in _OWN_COMMANDS or container.words() in ([], leader.words()):
                continue
            program = self._program(container, nodes)
            if (program.framework or framework) == framework and not program.dropped:
                if program.command != leading:
                    found[_OWN_COMMANDS[role]] = program.command
            else:
                message = f"the command of {role} was left out: {framework} does not start it"
                self._taker.note(LEFT_OUT, container.line("command"), message, "write one command for all nodes")
        return found
