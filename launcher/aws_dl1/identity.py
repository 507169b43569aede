# SPDX-License-Identifier: Apache-2.0
"""A node of a run on AWS. The program on its machine tells it the name of the start (docs/decisions/0021)."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from pathlib import Path

from launcher.aws_dl1.fetch import AwsError
from launcher.aws_dl1.fetch import Identity as AwsIdentity
from launcher.aws_dl1.services import read_aws_secret
from launcher.errors import MissingError
from launcher.platforms import Identity
from launcher.printing import LinePrinter

# Where the container's first program has put a copy of the code.
CODE_VARIABLE = "TRAINYARD_CODE"
# Why the image cannot use EFA, if the container's first program has found that.
EFA, NO_EFA_VARIABLE = "efa", "TRAINYARD_NO_EFA"
VARIABLES: Mapping[str, str] = {CODE_VARIABLE: "the folder with the job's code, if the machine brings the code"}


class NodeIdentity(Identity):
    """The base class reads rank and start: from the launch document and TRAINYARD_START."""

    def unpacked(self) -> Path | None:
        """The copy that training may write to."""
        folder = self.environment.get(CODE_VARIABLE)
        return Path(folder) if folder else None

    def transport_problem(self, transport: str) -> str:
        """What the container's first program has found."""
        return self.environment.get(NO_EFA_VARIABLE, "") if transport == EFA else ""

    def secret(self, name: str, say: LinePrinter) -> bytes:
        """From AWS Secrets Manager, by its name or ARN."""
        try:
            return read_aws_secret(AwsIdentity(self.environment), name).encode()
        except (AwsError, OSError, http.client.HTTPException, ValueError, KeyError) as error:
            raise MissingError(f"the secret {name} cannot be read from AWS Secrets Manager: {error}") from None
