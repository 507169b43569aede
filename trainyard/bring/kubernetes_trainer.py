# SPDX-License-Identifier: Apache-2.0
"""A TrainJob of Kubeflow Trainer with its (Cluster)TrainingRuntime, which has what the job itself does not say."""

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
from trainyard.bring.kubernetes_programs import read_started_program
from trainyard.bring.kubernetes_work import MOST, BroughtWork, brought_job
from trainyard.bring.model import BroughtJob
from trainyard.bring.notes import CHOICE, IMPOSSIBLE, LEFT_OUT, MISSING, SENSELESS, NoteTaker
from trainyard.bring.yaml_text import Path, YamlDocument

_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_LABEL = "trainer.kubeflow.org/framework"
_JOBS = ("spec", "template", "spec", "replicatedJobs")
_POLICY = ("spec", "mlPolicy")


def is_trainer_object(document: YamlDocument) -> bool:
    return document.text("kind") in _RUNTIMES


def read_train_job(
    document: YamlDocument, documents: Sequence[YamlDocument], taker: NoteTaker
) -> tuple[BroughtJob, list[YamlDocument]]:
    """The job, and its runtime if it is among the documents."""
    kind = document.text("spec", "runtimeRef", "kind") or _RUNTIMES[0]
    name = document.text("spec", "runtimeRef", "name")
    runtime = next((d for d in documents if d.text("kind") == kind and d.text("metadata", "name") == name), None)
    taker.file = document.name
    of_runtime = NoteTaker(runtime.name if runtime else "")
    reader = _TrainJobReader(document, taker, runtime, of_runtime, f"{kind} `{name[:60]}`")
    job = reader.read()
    taker.notes += of_runtime.notes
    return job, [runtime] if runtime else []


class _TrainJobReader:
    """`_where`: how messages call the runtime."""

    def __init__(
        self, document: YamlDocument, taker: NoteTaker, runtime: YamlDocument | None, of_runtime: NoteTaker, where: str
    ) -> None:
        self._document, self._taker, self._where = document, taker, where
        # Without its file, the runtime says nothing.
        self._runtime = runtime or YamlDocument(document.name, {}, {})
        self._of_runtime, self._has_runtime = of_runtime, runtime is not None

    def read(self) -> BroughtJob:
        document = self._document
        self._judge()
        framework = self._framework()
        container = self._container()
        note_volumes(container)
        words = self._words(container)
        if not words and not self._has_runtime:
            message = f"it has no command: that is in the {self._where}, which is not among the files"
            remedy = "write it into a file (`kubectl get … -o yaml`), and name that, too"
            raise self._taker.refuse(MISSING, document.line("spec", "runtimeRef"), message, remedy)
        if not self._has_runtime:
            message = f"the {self._where} is not among the files: what it sets is not known"
            self._taker.note(CHOICE, document.line("spec", "runtimeRef"), message, "name its file, too")
        nodes = max(1, self._number(("spec", "trainer", "numNodes")) or self._number((*_POLICY, "numNodes"), True) or 1)
        values = {**container.values, **self._own_values()}
        program = read_started_program(words, values, nodes, self._per_node(), document.name)
        # mpirun stands before scripts of any framework, and the runtime says which one it is.
        if program.framework != "horovod":
            framework = program.framework or framework
        environment = {
            **read_container_variables(self._runtime, (*container.path, "env"), self._of_runtime, framework, ""),
            **read_container_variables(document, ("spec", "trainer", "env"), self._taker, framework, ""),
        }
        elastic = (*_POLICY, "torch", "elasticPolicy")
        least, options = self._number((*elastic, "minNodes"), True), dict[str, Any]()
        if framework == "torchrun" and least and least < nodes:
            options = {"elastic": True, "minNodes": least}
        processes, text = program.processes, self._per_node()
        # Without a launcher before the script, one process starts, whatever the job says.
        if processes is None and program.framework:
            processes = int(text) if text.isdigit() else 0 if text in ("auto", "gpu") else None
        seconds = self._number(("spec", "activeDeadlineSeconds"))
        image = document.text("spec", "trainer", "image")
        line = document.line("spec", "trainer", "image") if image else 0
        work = BroughtWork(
            framework=framework,
            strategy="",
            roles={"main": 1, **({"worker": nodes - 1} if nodes > 1 else {})},
            program=program,
            processes=processes,
            options=options,
            environment=environment,
            needs=self._needs(container),
            minutes=math.ceil(seconds / 60),
            retries=0,
            image=(image or container.image(), line),
            command_line=document.line("spec", "trainer"),
            machine_line=document.line("spec", "trainer", "resourcesPerNode"),
        )
        name = document.text("metadata", "name") or document.text("metadata", "generateName")
        return brought_job(name, work, self._taker)

    def _judge(self) -> None:
        catalog = table("bring/kubernetes")
        rows: dict[str, Mapping[str, Any]] = {**catalog["keys"], **catalog["trainer"]}
        pod = ".".join((*_JOBS, "template", "spec", "template"))
        rows |= {f"{pod}.{key}": row for key, row in catalog["pod"].items()}
        judge_document(self._document, rows, self._taker)
        if self._document.at("spec", "suspend") is True:
            note_suspended(self._document, ("spec", "suspend"), self._taker)
        if self._has_runtime:
            judge_document(self._runtime, rows, self._of_runtime)

    def _framework(self) -> str:
        """By the runtime's label, or the beginning of its name."""
        rows: Mapping[str, Mapping[str, str]] = table("bring/kubernetes")["runtimes"]
        label = self._runtime.text("metadata", "labels", _LABEL)
        name = label or self._document.text("spec", "runtimeRef", "name")
        row = rows.get(name) or next((row for key, row in rows.items() if name.startswith(key)), {})
        if "refused" in row:
            message = f"the {self._where} cannot be brought: {row['refused']}"
            line = self._document.line("spec", "runtimeRef")
            raise self._taker.refuse(IMPOSSIBLE, line, message, "run it where it is")
        if self._runtime.at(*_POLICY, "mpi") is not None and not label:
            return "horovod"
        return row.get("framework", "pytorch")

    def _container(self) -> TrainingContainer:
        """The container of the job in the runtime that trains: an MPI runtime has another one for mpirun."""
        names = [self._runtime.text(*_JOBS, index, "name") for index in range(len(self._runtime.items(*_JOBS)))]
        for index, name in enumerate(names):
            if name.endswith("initializer"):
                message = f"`{name[:40]}` was left out: nodes fetch no data and models before they train"
                remedy = "put them into a bucket, and name it under `inputs`"
                self._of_runtime.note(LEFT_OUT, self._runtime.line(*_JOBS, index), message, remedy)
        wanted = ("launcher", "node", "trainer", "trainer-node")
        index = next((names.index(name) for name in wanted if name in names), max(0, len(names) - 1))
        return training_container(
            self._runtime, self._of_runtime, (*_JOBS, index, "template", "spec", "template"), ("node", "trainer")
        )

    def _words(self, container: TrainingContainer) -> list[str]:
        """A command or arguments of the job replace those of its runtime."""
        words: list[str] = []
        for key in ("command", "args"):
            own = self._document.items("spec", "trainer", key)
            words += map(str, own or self._runtime.items(*container.path, key))
        return words

    def _own_values(self) -> Mapping[str, str]:
        path = ("spec", "trainer", "env")
        rows = range(len(self._document.items(*path)))
        return {self._document.text(*path, i, "name"): self._document.text(*path, i, "value") for i in rows}

    def _number(self, path: Path, of_runtime: bool = False) -> int:
        document, taker = (self._runtime, self._of_runtime) if of_runtime else (self._document, self._taker)
        value = document.at(*path)
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
            message = f"`{'.'.join(map(str, path))}` is not a whole number up to {MOST:,}"
            raise taker.refuse(SENSELESS, document.line(*path), message, "write a number")
        return value

    def _per_node(self) -> str:
        """As the job says it, or its runtime. `auto` and `gpu` mean one for each accelerator."""
        text = self._document.text("spec", "trainer", "numProcPerNode")
        of_runtime = (self._runtime.text(*_POLICY, key, "numProcPerNode") for key in ("torch", "mpi"))
        return text or next(filter(None, of_runtime), "")

    def _needs(self, container: TrainingContainer) -> MachineNeeds:
        path = ("spec", "trainer", "resourcesPerNode")
        if not self._document.table(*path):
            return read_machine(container, (*container.path, "resources"))
        own = TrainingContainer(self._document, self._taker, ("spec",), ("spec", "trainer"))
        return read_machine(own, path)
