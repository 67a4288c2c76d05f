"""The machine, in four words: `initial`, `actions`, `step`, `check`."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kvmodel import actions as act
from kvmodel.contract import Contract
from kvmodel.contract import validated as validated_contract
from kvmodel.errors import BadScope
from kvmodel.request import ABSENT, DONE, LOADING, RUNNING, WAITING
from kvmodel.rules import (
    abort,
    admit,
    declare_dead,
    die,
    expire,
    fail_copy,
    finish,
    grow,
    handle_output,
    launch,
    lookup,
    misuse,
    preempt,
    promote,
    report,
    report_mark,
    reset,
    run,
    stop,
    submit,
    wake,
)
from kvmodel.scope import Scope, sequences
from kvmodel.scope import validated as validated_scope
from kvmodel.setting import Setting
from kvmodel.state import State, initial_state
from kvmodel.streams import runnable
from kvmodel.transfer_job import COPIED, REPORTED


class Rule(NamedTuple):
    """What the contract says of one action: when it is forbidden, and what it does."""

    check: Callable[[Setting, State, Any], None]
    apply: Callable[[Setting, State, Any], State]


RULES: dict[type[act.Action], Rule] = {
    act.Submit: Rule(submit.check, submit.apply),
    act.Lookup: Rule(lookup.check, lookup.apply),
    act.ReleaseLookup: Rule(lookup.check_release, lookup.apply_release),
    act.Promote: Rule(promote.check, promote.apply),
    act.Admit: Rule(admit.check, admit.apply),
    act.Grow: Rule(grow.check, grow.apply),
    act.Launch: Rule(launch.check, launch.apply),
    act.Run: Rule(run.check, run.apply),
    act.Report: Rule(report.check, report.apply),
    act.ReportMark: Rule(report_mark.check, report_mark.apply),
    act.Wake: Rule(wake.check, wake.apply),
    act.Expire: Rule(expire.check, expire.apply),
    act.DeclareDead: Rule(declare_dead.check, declare_dead.apply),
    act.HandleOutput: Rule(handle_output.check, handle_output.apply),
    act.PreemptUnderPressure: Rule(preempt.check_under_pressure, preempt.apply_under_pressure),
    act.Preempt: Rule(preempt.check, preempt.apply),
    act.Finish: Rule(finish.check, finish.apply),
    act.Stop: Rule(stop.check, stop.apply),
    act.Abort: Rule(abort.check, abort.apply),
    act.Reset: Rule(reset.check, reset.apply),
    act.DuplicateReport: Rule(report.check_duplicate, report.duplicate),
    act.LoseReport: Rule(report.check_lose, report.lose),
    act.RepeatMark: Rule(report_mark.check_repeat, report_mark.repeat),
    act.LoseMark: Rule(report_mark.check_lose, report_mark.lose),
    act.ForgeReport: Rule(report.check_forge, report.forge),
    act.FreeTwice: Rule(misuse.check, misuse.apply),
    act.FailCopy: Rule(fail_copy.check, fail_copy.apply),
    act.Die: Rule(die.check, die.apply),
}


class Machine:
    """The reference state machine of one contract at one scope. Immutable; raises BadScope when they do not fit."""

    __slots__ = ("setting",)

    def __init__(self, contract: Contract, scope: Scope) -> None:
        contract, scope = validated_contract(contract), validated_scope(scope)
        for fault, times in (
            ("duplicate", scope.duplicates),
            ("loss", scope.losses),
            ("forgery", scope.forgeries),
            ("double-free", scope.double_frees),
            ("failure", scope.failures + scope.partial_failures),
        ):
            if times and fault not in contract.environment:
                raise BadScope(f"the scope has {times} of fault {fault!r}, which the contract's environment excludes")
        if scope.deaths and (why := objection_to_deaths(contract)):
            raise BadScope(f"the scope has {scope.deaths} of deaths, and {why}")
        if scope.window and contract.depth > 1:
            raise BadScope(
                f"the scope has window {scope.window} and the contract depth {contract.depth}: a window moves when no "
                "launched step reads what it leaves, so use depth 1, or window 0"
            )
        if scope.second_blocks and contract.marks:
            raise BadScope(
                f"the scope has {scope.second_blocks} second_blocks and the contract reports marks, which there are of "
                "stores and loads alone: use reports per-job, or second_blocks 0"
            )
        keys = sequences(scope)
        self.setting = Setting(contract, scope, keys.prompt, keys.total, keys.names)

    @classmethod
    def of(cls, setting: Setting) -> "Machine":
        """The machine of a setting whose keys were made elsewhere, as those of a log are. Nothing of it is checked."""
        machine = cls.__new__(cls)
        machine.setting = setting
        return machine

    def initial(self) -> State:
        """Nothing submitted, all blocks free, nothing ever written."""
        return initial_state(self.setting.scope)

    def actions(self, state: State) -> list[act.Action]:
        """Everything that the policy, the clients and the environment may do next, choices left to the policy."""
        setting = self.setting
        found: list[act.Action] = [act.Run(worker, stream) for worker, stream in runnable(state)]
        if setting.contract.marks:
            found.extend(report_mark.offered(setting, state))
        else:
            self._reports(state, found)
        if handle_output.offered(setting, state):
            found.append(act.HandleOutput())
        for number, request in enumerate(state.requests):
            if request.phase != DONE:
                self._request_actions(state, number, request.phase, found)
        victim = preempt.under_pressure(setting, state)
        if victim is not None:
            found.append(act.PreemptUnderPressure(victim))
        if launch.offered(setting, state):
            found.append(act.Launch())
        if setting.contract.expires:
            found.extend(expire.offered(setting, state))
            found.extend(declare_dead.offered(setting, state))
        found.extend(reset.offered(setting, state))
        if any(state.faults_left):
            self._faults(state, found)
        return found

    def _reports(self, state: State, found: list[act.Action]) -> None:
        for job in state.jobs:
            for worker, progress in enumerate(job.progress):
                if progress == COPIED:
                    found.append(act.Report(worker, job.id))
                    if state.faults_left.losses:
                        found.append(act.LoseReport(worker, job.id))
                elif progress == REPORTED and state.faults_left.duplicates:
                    found.append(act.DuplicateReport(worker, job.id))

    def _request_actions(self, state: State, number: int, phase: int, found: list[act.Action]) -> None:
        setting = self.setting
        if phase == ABSENT:
            if submit.offered(setting, state, number):
                found.append(act.Submit(number))
            return
        if phase == WAITING:
            if lookup.offered(setting, state, number):
                found.append(act.Lookup(number))
            if lookup.release_offered(state, number):
                found.append(act.ReleaseLookup(number))
            if setting.scope.second_blocks and promote.offered(setting, state, number):
                found.append(act.Promote(number))
            if admit.offered(setting, state, number):
                found.append(act.Admit(number))
        elif phase == LOADING:
            if wake.offered(setting, state, number):
                found.append(act.Wake(number))
        elif phase == RUNNING:
            if grow.offered(setting, state, number):
                found.append(act.Grow(number))
            if finish.offered(setting, state, number):
                found.append(act.Finish(number))
            if stop.offered(setting, state, number):
                found.append(act.Stop(number))
        if preempt.offered(setting, state, number):
            found.append(act.Preempt(number))
        if abort.offered(setting, state, number):
            found.append(act.Abort(number))

    def _faults(self, state: State, found: list[act.Action]) -> None:
        once_more = state.faults_left.duplicates and not self.setting.contract.marks
        if once_more and (retired := report.retired_job(state)) is not None:
            found.append(act.DuplicateReport(0, retired))
        if state.faults_left.forgeries:
            found.append(act.ForgeReport(0))
        found.extend(misuse.offered(state))
        found.extend(die.offered(self.setting, state))
        if state.faults_left.failures or state.faults_left.partial_failures:
            found.extend(fail_copy.offered(state, runnable(state)))

    def step(self, state: State, action: act.Action) -> State:
        """The state after an action. Total on what `actions` offers and on what `check` accepts."""
        return RULES[type(action)].apply(self.setting, state, action)

    def check(self, state: State, action: act.Action) -> None:
        """Raises Forbidden(rule, why) if the contract forbids this action, with these choices, in this state."""
        RULES[type(action)].check(self.setting, state, action)

    def answer(self, state: State, action: act.Reset) -> bool:
        """What the reference answers to a reset in this state."""
        return reset.would_answer_true(self.setting, state, action)


def objection_to_deaths(contract: Contract) -> str:
    """Why workers cannot die under these modes; empty if they can."""
    if contract.output_from == "first":
        return "the contract takes output from the first worker: then steps end without the dead. Use output_from all"
    if contract.marks:
        return "the contract reports marks, which say of one stream what deaths say of a worker. Use reports per-job"
    return ""
