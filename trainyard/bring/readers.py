# SPDX-License-Identifier: Apache-2.0
"""Recognises what files are, and reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainyard.bring.ads import is_ads_job, read_ads_job
from trainyard.bring.kubernetes import is_kubernetes_object, read_kubernetes_job
from trainyard.bring.model import BroughtJob
from trainyard.bring.notes import UNREADABLE, BringError, Note, NoteTaker
from trainyard.bring.openpai import is_openpai_job, openpai_platform, read_openpai_job
from trainyard.bring.slurm import read_batch_script
from trainyard.bring.source_text import SourceText
from trainyard.bring.yaml_text import read_yaml_documents

_DIRECTIVE = re.compile(r"^#SBATCH\b", re.MULTILINE)
_KNOWN = "a batch script of Slurm, a job of ADS or OpenPAI, nor one of Kubernetes"


def read_brought_job(sources: Sequence[SourceText], platform: str) -> tuple[BroughtJob, NoteTaker]:
    """The job of the files, for a platform, or for any if that is empty. BringError if they are of no known kind, or no
    stack can do what they ask for."""
    first = sources[0]
    if first.text.startswith("#!") or _DIRECTIVE.search(first.text):
        _require_one(sources)
        return read_batch_script(first)
    documents = [document for source in sources for document in read_yaml_documents(source)]
    if documents and is_ads_job(documents[0]):
        _require_one(sources)
        return read_ads_job(documents[0])
    if documents and is_openpai_job(documents[0]):
        _require_one(sources)
        return read_openpai_job(documents[0], platform or openpai_platform())
    if any(is_kubernetes_object(document) for document in documents):
        return read_kubernetes_job(documents)
    raise BringError(Note(UNREADABLE, first.name, 0, f"it is not {_KNOWN}", "see docs/bringing.md"))


def _require_one(sources: Sequence[SourceText]) -> None:
    for source in sources[1:]:
        remedy = "name one file, and call `trainyard convert` again for the other"
        raise BringError(Note(UNREADABLE, source.name, 0, f"it does not belong to {sources[0].name}", remedy))
