# SPDX-License-Identifier: Apache-2.0
"""Lazy packages of a Pulumi SDK: they import a module when one of its names is first used.

By default, the first name of such a package imports all of its hundreds of modules. That takes half of the time of a
preview, and a stack uses about twenty names. A name without a module of its own, such as an input's type, still imports
the whole package, so other code in the program can use the SDK as usual.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any

import pulumi


class LazyPackage(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and not _take_names_of_module(self, name):
            self.__class__ = ModuleType  # type: ignore[assignment]
            assert self.__spec__ is not None
            assert self.__spec__.loader is not None
            self.__spec__.loader.exec_module(self)
        return object.__getattribute__(self, name)


def _take_names_of_module(package: ModuleType, name: str) -> bool:
    """Puts the public names of the module for `name` into the package, as `from .module import *` would.

    If the name is that of a module, only the module itself is put there: names in `outputs` differ from the same names
    in the package.
    """
    path = f"{package.__name__}.{_module_with_name(name)}"
    try:
        module = import_module(path)
    except ModuleNotFoundError as error:
        if error.name != path:
            raise
        return False
    # `outputs` imports itself while it is only half imported.
    public = {each: getattr(module, each) for each in getattr(module, "__all__", ()) if hasattr(module, each)}
    itself = path.endswith(f".{name}") and name not in public
    vars(package).update({name: module} if itself else public)
    return name in vars(package)


def _module_with_name(name: str) -> str:
    """The module of a name: `RouteTable` is in `route_table`, `get_services_output` in `get_services`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().removesuffix("_output")


def make_packages_lazy(root: ModuleType, packages: Iterable[str]) -> None:
    """Replaces packages of the SDK `root` that are not imported yet with lazy ones."""
    for name in packages:
        path = f"{root.__name__}.{name}"
        if type(sys.modules.get(path)) is ModuleType:
            continue  # already imported as a whole
        spec = PathFinder.find_spec(path, root.__path__)
        assert spec is not None
        package = module_from_spec(spec)
        package.__class__ = LazyPackage
        sys.modules[path] = package
        setattr(root, name, package)


def invoke_lookup(root: ModuleType, token: str, **arguments: Any) -> Mapping[str, Any]:
    """The result of a function of the SDK's provider, with the provider's names.

    The function's own module makes the same call, but first imports the types of its whole package, which takes up to
    0.15 s.
    """
    options = root._utilities.get_invoke_opts_defaults()
    answer: Mapping[str, Any] = pulumi.runtime.invoke(token, arguments, options).value
    return answer
