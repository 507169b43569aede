# SPDX-License-Identifier: Apache-2.0
"""Counts how well names are found: one-word names, names defined twice, helpers called once, circles of imports.

`AIMS` are the figures that the project works towards. A contract test holds the figures of today.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

AIMS = "aims: 20 % or fewer, 75 % or more, 12 or fewer called once, 0 circles"
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class NameFigures:
    """Of module-level functions: the shares in percent of one-word names, and of those whose name no other function of
    the product has; the private ones in 1,000 lines of code, and those of them that their module calls once."""

    one_word: float
    defined_once: float
    private: float
    called_once: float
    circles: int
    circles_with_lazy: int

    def __str__(self) -> str:
        return (
            f"module-level functions: {self.one_word:.1f} % with a name of one word, {self.defined_once:.1f} % with a"
            f" name of their own\nprivate ones in 1,000 lines: {self.private:.1f}, of them called once"
            f" {self.called_once:.1f}\ncircles of imports: {self.circles}, with those in functions"
            f" {self.circles_with_lazy}\n{AIMS}"
        )


def measure_names(trees: Mapping[str, ast.Module], lines: int) -> NameFigures:
    """`trees`: every module of the product by its file. `lines`: their lines of code."""
    names = [function.name for tree in trees.values() for function in module_functions(tree)]
    count = Counter(names)
    private = called_once = 0
    for tree in trees.values():
        own = [function.name for function in module_functions(tree) if is_private(function.name)]
        read = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        private += len(own)
        called_once += sum(read[name] == 1 for name in own)
    return NameFigures(
        one_word=100 * sum("_" not in name.strip("_") for name in names) / len(names),
        defined_once=100 * sum(count[name] == 1 for name in names) / len(names),
        private=1000 * private / lines,
        called_once=1000 * called_once / lines,
        circles=len(find_circles(_import_graph(trees, lazy=False))),
        circles_with_lazy=len(find_circles(_import_graph(trees, lazy=True))),
    )


def module_functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in tree.body if isinstance(node, Function))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _import_graph(trees: Mapping[str, ast.Module], lazy: bool) -> dict[str, set[str]]:
    """The modules that each module imports. `lazy`: also inside of functions. Never those for type checkers only."""
    modules = {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): tree for file, tree in trees.items()
    }
    graph: dict[str, set[str]] = {}
    for module, tree in modules.items():
        targets = {target for node in _import_nodes(tree, lazy) for target in _imported_modules(node, modules)}
        graph[module] = targets - {module}
    return graph


def _import_nodes(node: ast.AST, lazy: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Looks into statements only: expressions, which are most of a tree, import nothing."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        if part == "body" and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        for child in getattr(node, part, ()):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child
            elif lazy or not isinstance(child, Function):
                yield from _import_nodes(child, lazy)


def _imported_modules(node: ast.Import | ast.ImportFrom, modules: Mapping[str, ast.Module]) -> Iterator[str]:
    for alias in node.names:
        whole = alias.name if isinstance(node, ast.Import) else f"{node.module}.{alias.name}"
        parts = (whole, whole.rpartition(".")[0])
        yield from [name for name in parts if name in modules][:1]


def find_circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The groups of modules that import one another, directly or not."""
    reached = {module: _reachable_modules(graph, module) for module in graph}
    groups = {frozenset(other for other in reached[module] if module in reached[other]) for module in graph}
    return [set(group) for group in groups if len(group) > 1]


def _reachable_modules(graph: Mapping[str, set[str]], module: str) -> set[str]:
    found: set[str] = set()
    waiting = [module]
    while waiting:
        more = graph[waiting.pop()] - found
        found |= more
        waiting += more
    return found
