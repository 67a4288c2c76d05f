"""Typed refusals: which rule of the contract forbids a step, and why."""


class Forbidden(Exception):
    """The contract forbids this step.

    rule  name of the property or of the guard that is broken, such as `no-double-free`
    why   one sentence in the field's words
    """

    def __init__(self, rule: str, why: str) -> None:
        super().__init__(f"{rule}: {why}")
        self.rule = rule
        self.why = why
