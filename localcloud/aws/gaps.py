# SPDX-License-Identifier: Apache-2.0
"""Lists how the local AWS differs from AWS: which operations of botocore's models it has, and differences from rows."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from catalog.tables import table
from localcloud.aws import additions, s3_operations
from localcloud.aws.border.requests import service_model
from localcloud.aws.services import SERVICES, AwsService, Wire
from localcloud.gaps import list_item, operations_line

_HEAD = """\
## AWS

The local cloud has these services of AWS, most operations by moto. It refuses what AWS refuses (rows of
catalog/aws_refusals.toml, and the limits in botocore's models), and authorizes each call by the policies in force.
"""


@dataclass(frozen=True)
class AwsCoverage:
    """The coverage of a service: its title, the operations of the local AWS, and the number of AWS's operations."""

    title: str
    there: tuple[str, ...]
    all: int


def gap_paragraphs() -> Iterator[str]:
    """Names only operations that exist here, because AWS has thousands."""
    services = list(botocore_coverage())
    yield _HEAD
    lines = [f"| {service.title} | {len(service.there)} | {service.all} |" for service in services]
    yield "\n".join(["| service | implemented | of |", "| --- | --- | --- |", *lines])
    yield "Differences:"
    refused = table("aws_calls")["refused"].items()
    whys = {f"{prefix}.{operation}": why for prefix, rows in refused for operation, why in rows.items()}
    titles, differences = {service.prefix: service.title for service in SERVICES.values()}, []
    for name, why in {**whys, **table("aws_refusals")["lacking"]}.items():
        prefix, _, operation = name.partition(".")
        differences.append(f"{titles[prefix]}: {operation} is refused: {why}.")
    yield "\n".join(map(list_item, [*differences, *table("aws_local")["differences"]]))
    for service in services:
        yield f"### {service.title}"
        yield operations_line("Implemented", service.there)


def botocore_coverage() -> Iterator[AwsCoverage]:
    for service in SERVICES.values():
        names = set(service_model(service.backend).operation_names)
        refused = table("aws_calls")["refused"].get(service.prefix, {})
        implemented = (
            set(s3_operations.s3_operation_names()) if service.wire is Wire.S3 else set(_handled_operations(service))
        ) & names
        yield AwsCoverage(service.title, tuple(sorted(implemented - set(refused))), len(names))


def _handled_operations(service: AwsService) -> Iterator[str]:
    """The operations for which moto or one of our additions has a handler."""
    from importlib import import_module

    from moto.core.responses import BaseResponse
    from moto.core.utils import camelcase_to_underscores

    module = import_module(f"moto.{service.backend}.responses")
    classes: list[Any] = [
        one
        for one in vars(module).values()
        if inspect.isclass(one) and issubclass(one, BaseResponse) and one.__module__ == module.__name__
    ]
    classes += additions.OPERATIONS.get(service.backend, ())
    for name in service_model(service.backend).operation_names:
        if any(hasattr(one, camelcase_to_underscores(name)) for one in classes):
            yield name
