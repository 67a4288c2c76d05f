"""Invariants: every property asked of a target's own state, with no machine beside it.

`explain` holds a target against the machine, and a difference between them is named by the property that it breaks.
Here it does not matter what the machine thinks: a target that can give its own state in the terms of the properties
(`Abstracting`) is caught by an invariant that is broken in that state, or by a step of its own that breaks one.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from kvmodel import ACTIONS, Action, State
from kvmodel.setting import Setting
from kvproof.targets.command import Command
from kvproof.targets.divergence import Divergence
from kvproof.targets.explain import crashed
from kvproof.targets.guarded import asked_of_target
from kvproof.targets.outcome import Crashed
from kvspecs.catalogue import JUDGED
from kvspecs.proof.compilation import Compiled
from kvspecs.proof.interpreter import NotSpecified, check_specified


class Broken(NamedTuple):
    """A property that does not hold, and how that shows, in one sentence."""

    property: str
    sentence: str


def specification_of(setting: Setting) -> Compiled | None:
    """The invariants of the proofs, where the specification has this setting's modes."""
    return None if unspecified(setting) else Compiled(setting)


_OF_WHAT_WAS_COPIED = frozenset({"store-has-written", "load-has-written"})
"""Invariants by what a copy has written unless it failed. Of a copy that failed and whose report was lost a target's
own state need not note that it failed."""


def unnoted(setting: Setting) -> frozenset[str]:
    """Invariants of the proofs that a target's own state says too little for at a setting, by name."""
    scope = setting.scope
    fails_unheard = scope.losses and (scope.failures or scope.partial_failures)
    return _OF_WHAT_WAS_COPIED if fails_unheard else frozenset()


def unspecified(setting: Setting) -> str:
    """Why the invariants of the proofs say nothing of a setting; empty: they do."""
    try:
        check_specified(setting)
    except NotSpecified as lack:
        return str(lack)
    return ""


class Invariants:
    """Every property of one setting, asked of the states and steps of a target. A state that makes no sense, so that a
    property cannot be asked of it, is a crash of the target."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self._unnoted = unnoted(setting)
        self._on_state = [(p.name, p.on_state) for p in JUDGED if p.on_state is not None]
        self._on_step = {
            kind: [
                (p.name, p.on_step)
                for p in JUDGED
                if p.on_step is not None and (not p.actions or kind.__name__ in p.actions)
            ]
            for kind in ACTIONS
        }

    @cached_property
    def specification(self) -> Compiled | None:
        """The invariants of the proofs; made when first asked for, since few targets give their own state."""
        return specification_of(self.setting)

    def of_state(self, own: State, proofs: bool = True) -> Broken | None:
        """The first property that does not hold of this state. proofs: their invariants are asked too."""
        for name, judge in self._on_state:
            sentence = judge(self.setting, own)
            if sentence is not None:
                return Broken(name, sentence)
        return self.of_specification(own) if proofs else None

    def of_specification(self, own: State) -> Broken | None:
        """The first invariant of the proofs that does not hold of this state, by the property that it serves."""
        if self.specification is None:
            return None
        for broken in self.specification.broken(own):
            if broken.invariant.name in self._unnoted:
                continue
            return Broken(broken.invariant.serves, f"it breaks invariant {broken}: {broken.invariant.reason}")
        return None

    def of_step(self, before: State, action: Action, after: State) -> Broken | None:
        """The first property that this step breaks."""
        for name, judge in self._on_step[type(action)]:
            sentence = judge(self.setting, before, action, after)
            if sentence is not None:
                return Broken(name, sentence)
        return None

    def judged(
        self, before: State, command: Command, actions: Sequence[Action], after: State | Crashed, proofs: bool = True
    ) -> Divergence | None:
        """What one command of the target breaks in its own state. A command that stands for several actions is judged
        by where it leads. proofs: their invariants are asked too."""
        difference = self.judged_step(before, command, actions, after)
        if difference is not None or isinstance(after, Crashed):
            return difference
        return _told(asked_of_target(lambda: self.of_state(after, proofs)), command, _only(actions))

    def judged_by_proofs(self, command: Command, actions: Sequence[Action], after: State) -> Divergence | None:
        """Which of their invariants breaks in the state to which one command has led."""
        return _told(asked_of_target(lambda: self.of_specification(after)), command, _only(actions))

    def judged_step(
        self, before: State, command: Command, actions: Sequence[Action], after: State | Crashed
    ) -> Divergence | None:
        """The same, where the state that it leads to was judged before."""
        if isinstance(after, Crashed):
            return crashed(command, after)
        only = _only(actions)
        if only is None:
            return None
        return _told(asked_of_target(lambda: self.of_step(before, only, after)), command, only)


def _only(actions: Sequence[Action]) -> Action | None:
    return actions[0] if len(actions) == 1 else None


def _told(broken: Broken | Crashed | None, command: Command, only: Action | None) -> Divergence | None:
    if isinstance(broken, Crashed):
        return crashed(command, broken)
    return None if broken is None else _divergence(broken, command, None if only is None else type(only))


def _divergence(broken: Broken, command: Command, rule: type[Action] | None) -> Divergence:
    """A broken invariant where the machine and the target agree."""
    sentence = broken.sentence[:1].upper() + broken.sentence[1:]
    return Divergence(
        broken.property,
        f"{sentence}.",
        (f"{broken.property} holds",),
        (f"its own state: {broken.sentence}",),
        rule,
        ("invariant", command.verb, broken.property),
    )
