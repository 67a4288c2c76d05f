"""An interpreter of its own whose kvoffload has a bug in it: what is asked there is answered as JSON.

answer_of(bug, ...)   plants the bug, and asks
forking()             is what the process that is asked does: it has imported what most answers need, and no kvoffload,
                      and forks for each answer, since to import it all again would cost more than most answers
"""

import atexit
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from kvmodel.contract import DISCIPLINES
from kvspecs.proof.compilation import compiled
from tests.bugs.bug import Bug
from tests.bugs.planting import ROOT, plant

COMMON = "tests.bugs.hunt"
"""What is imported once for all answers."""

ANSWER, WORDS = "answer.json", "stderr"
"""In the folder of an answer: what came of it, and what was said."""


class _Forking:
    """The process that forks. It ends when its standard input is closed."""

    def __init__(self) -> None:
        paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from tests.bugs.interpreter import forking; forking()"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def asked(self, folder: str, module: str, expression: str, limit: float) -> int | None:
        """The exit status of the fork that has answered; None: it was ended, since its time was up."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([folder, module, expression, limit]), file=self._process.stdin, flush=True)
        said = self._process.stdout.readline()
        if not said:
            raise RuntimeError("the process that forks for each bug has ended")
        status: int | None = json.loads(said)
        return status

    def end(self) -> None:
        self._process.communicate()


_idle: list[_Forking] = []
"""Those that nobody waits for: as many as have been asked at once."""


def answer_of(bug: Bug | None, module: str, expression: str, limit: float) -> Any:
    """What an expression of names of a module evaluates to in an interpreter that has the bug; None: the sound one.

    limit  elapsed seconds. TimeoutError beyond it, for a mutant may go round in circles; RuntimeError if it fails.
    """
    name = "the sound kvoffload" if bug is None else bug.id
    with tempfile.TemporaryDirectory() as folder:
        if bug is not None:
            plant(bug, Path(folder))
        forks = _one_that_forks()
        status = forks.asked(folder, module, expression, limit)
        _idle.append(forks)
        if status is None:
            raise TimeoutError(f"no answer within {limit:.0f} s")
        if status:
            raise RuntimeError(f"the interpreter with {name} failed:\n{(Path(folder) / WORDS).read_text()}")
        return json.loads((Path(folder) / ANSWER).read_text())


def _one_that_forks() -> _Forking:
    try:
        return _idle.pop()  # and not asked before whether there is one: two threads may ask for the same
    except IndexError:
        return _Forking()


@atexit.register
def let_go() -> None:
    """End the processes that fork; what they and their forks took is in the times of this one from then on."""
    while _idle:
        _idle.pop().end()


def forking() -> None:
    """Fork for each line of standard input, and say of each what status the fork has ended with."""
    import_module(COMMON)
    for discipline in DISCIPLINES:
        compiled(discipline)  # which is kept, and which nearly every answer needs
    gc.freeze()  # a collection in a fork would copy every page of what it inherits
    for line in sys.stdin:
        folder, module, expression, limit = json.loads(line)
        ended, held = os.pipe()
        pid = os.fork()
        if pid == 0:
            _answer(Path(folder), module, expression)
        os.close(held)
        print(json.dumps(_status(pid, ended, limit)), flush=True)
        os.close(ended)


def _status(pid: int, ended: int, limit: float) -> int | None:
    """ended  a pipe that the fork holds open as long as it runs, and that nobody writes to."""
    in_time, _, _ = select.select([ended], [], [], limit)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if in_time else None


def _answer(folder: Path, module: str, expression: str) -> NoReturn:
    """In the fork: its kvoffload is the one in the folder, if there is one."""
    code = 1
    try:
        os.chdir(folder)
        words = os.open(WORDS, os.O_WRONLY | os.O_CREAT)
        os.dup2(words, 1)
        os.dup2(words, 2)
        sys.path.insert(0, str(folder))
        answer = eval(expression, dict(vars(import_module(module))))
        Path(ANSWER).write_text(json.dumps(answer))
        code = 0
    except BaseException:  # noqa: BLE001 (whatever the bug raises is for the one who asked)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def require_planted() -> None:
    """In such an interpreter: RuntimeError unless the kvoffload that is imported is the one with the bug."""
    import kvoffload

    if not Path(kvoffload.__file__).is_relative_to(Path.cwd()):
        raise RuntimeError(f"kvoffload is the one in {kvoffload.__file__}, and not the one with the bug")
