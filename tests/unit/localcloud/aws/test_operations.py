# SPDX-License-Identifier: Apache-2.0
"""The operations of `OPERATIONS` override moto's, and moto's classes are not changed."""

from __future__ import annotations

import inspect
from collections import Counter
from importlib import import_module
from typing import Any

import pytest

from localcloud.aws.additions import OPERATIONS, add_own_operations

_MODELS = {"servicequotas": "service-quotas"}


def _public(ours: type[Any]) -> list[str]:
    return [name for name in vars(ours) if not name.startswith("_")]


@pytest.mark.parametrize("service", OPERATIONS)
def test_each_operation_exists_on_aws_and_is_defined_once(service: str) -> None:
    """An operation that calls moto's would skip a second one of ours."""
    from moto.core.utils import camelcase_to_underscores, get_service_model

    known = {
        camelcase_to_underscores(name) for name in get_service_model(_MODELS.get(service, service)).operation_names
    }
    names = Counter(name for ours in OPERATIONS[service] for name in _public(ours))
    assert names.keys() <= known
    assert set(names.values()) == {1}


@pytest.mark.parametrize("service", OPERATIONS)
def test_motos_classes_are_not_changed(service: str) -> None:
    from moto.core.responses import BaseResponse

    module = import_module(f"moto.{service}.responses")
    classes = [one for one in vars(module).values() if inspect.isclass(one) and issubclass(one, BaseResponse)]
    own: type[Any] = next(one for one in classes if one.__module__ == module.__name__)
    completed = add_own_operations(own)  # type: ignore[arg-type]
    for ours in OPERATIONS[service]:
        for name in _public(ours):
            assert getattr(completed, name) is getattr(ours, name)
            assert getattr(own, name, None) is not getattr(ours, name)


def test_a_service_without_our_operations_keeps_motos_class() -> None:
    from moto.sts.responses import TokenResponse

    assert add_own_operations(TokenResponse) is TokenResponse
