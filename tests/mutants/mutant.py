"""One mutant."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One small change of one function.

    name      mutmut's, which counts the mutants of a function; `module` and `function` say where it is
    was, now  the lines that differ, as `ast.unparse` writes them. Unlike the number they outlive a change elsewhere
    """

    name: str
    module: str
    function: str
    was: str
    now: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.module, self.function, self.was, self.now
