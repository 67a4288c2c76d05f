"""What mutmut is asked for: a module with every mutant of each of its functions beside the original."""

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import mangled_name_from_mutant_name, orig_function_and_class_names_from_key

from tests.mutants.mutant import Mutant


def without_property_decorators(source: str) -> str:
    """The same classes, with `name = property(name)` after a method in the place of `@property` before it.

    mutmut leaves decorated methods alone, and much of what the control plane decides is in properties.
    """
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef) or len(node.decorator_list) != 1 or node.end_lineno is None:
            continue
        decorator = node.decorator_list[0]
        if isinstance(decorator, ast.Name) and decorator.id == "property":
            lines[decorator.lineno - 1] = "\n"
            lines[node.end_lineno - 1] += f"{' ' * node.col_offset}{node.name} = property({node.name})\n"
    return "".join(lines)


def mutated(module: str, source: str) -> tuple[str, list[Mutant]]:
    """The module in which each function asks MUTANT_UNDER_TEST which of its versions to be, and what these are."""
    made = mutate_file_contents(f"src/{module.replace('.', '/')}.py", without_property_decorators(source))
    versions = dict(_functions(made.code))
    mutants = []
    for name in made.mutant_names:
        function, owner = orig_function_and_class_names_from_key(name)
        original = _lines(versions[f"{mangled_name_from_mutant_name(name)}__mutmut_orig"])
        was, now = _difference(original, _lines(versions[name]))
        mutants.append(Mutant(f"{module}.{name}", module, f"{owner}.{function}" if owner else function, was, now))
    return made.code, mutants


def _functions(code: str) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in ast.parse(code).body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef):
                yield inner.name, inner


def _lines(function: ast.FunctionDef) -> list[str]:
    """Its source line by line, without its name."""
    function.name = "_"
    return ast.unparse(function).splitlines()


def _difference(was: list[str], now: list[str]) -> tuple[str, str]:
    changed = [span for span in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if span[0] != "equal"]
    before = [line.strip() for _, first, last, _, _ in changed for line in was[first:last]]
    after = [line.strip() for _, _, _, first, last in changed for line in now[first:last]]
    return "\n".join(before), "\n".join(after)
