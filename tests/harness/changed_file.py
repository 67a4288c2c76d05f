"""kvoffload as a foreign target in a file, which does something else in one place."""

from pathlib import Path

from kvmodel.contract import Contract
from kvproof.job import Job
from kvproof.scopes import SCOPES

TARGET = """
import ctypes, os, sys, threading
from kvmodel import actions as act
from kvmodel.actions import Admission, Launching
from kvmodel.transfer_job import Pair
from kvproof.targets.kvoffload import Ledger
from kvproof.targets.outcome import Answer, Refused
from kvproof.targets.view import JobView, View

class Engine(Ledger):
    disciplines = ("pinning",)
    patience_s = 1.0

    def perform(self, command):
        outcome = super().perform(command)
        if command.verb == "handle_output":
            {perform}
        return outcome

    def view(self):
        view = super().view()
        {view}
        return view

    def offers(self):
        offers = super().offers()
        {offers}
        return offers

    def __init__(self, setting):
        {opened}
        super().__init__(setting)
"""


def written(folder: Path, **changes: str) -> str:
    """A file with kvoffload as a foreign target, changed in these places, as `--target` takes it."""
    places = dict.fromkeys(("perform", "view", "offers", "opened"), "pass") | changes
    path = folder / "engine.py"
    path.write_text(TARGET.format(**places))
    return f"{path}:Engine"


def job(target: str, engine: str, scope: str = "s1", **options: object) -> Job:
    return Job(engine, target, "pinning", scope, SCOPES[scope], Contract("pinning"), options=options)
