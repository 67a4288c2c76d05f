"""The stateful test: Hypothesis chooses commands and their arguments, and shrinks what fails."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.bugs.compare.serving import Serving


class PlainMachine(RuleBasedStateMachine):
    """Every command at any time when it can do something; the books are looked at after each."""

    serving: Serving | None = None

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.serving = Serving(lambda options: data.draw(st.sampled_from(list(options))))

    def _do(self, command: str, data: st.DataObject) -> None:
        assert self.serving is not None
        self.serving.pick = lambda options: data.draw(st.sampled_from(list(options)))
        getattr(self.serving, command)()
        self.serving.go_on()

    @rule(data=st.data())
    def submit(self, data: st.DataObject) -> None:
        self._do("submit", data)

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        self._do("step", data)

    @rule(data=st.data())
    def serve(self, data: st.DataObject) -> None:
        self._do("serve", data)

    @precondition(lambda self: self.serving is not None and self.serving.device.runnable())
    @rule(data=st.data())
    def run_operation(self, data: st.DataObject) -> None:
        self._do("run_operation", data)

    @rule(data=st.data())
    def deliver(self, data: st.DataObject) -> None:
        self._do("deliver", data)

    @precondition(lambda self: self.serving is not None and self.serving.device.runnable())
    @rule(data=st.data())
    def fail_copy(self, data: st.DataObject) -> None:
        self._do("fail_copy", data)

    @precondition(lambda self: self.serving is not None and self.serving.engine.requests)
    @rule(data=st.data())
    def lookup(self, data: st.DataObject) -> None:
        self._do("lookup", data)

    @precondition(lambda self: self.serving is not None and self.serving.engine.requests)
    @rule(data=st.data())
    def depart(self, data: st.DataObject) -> None:
        self._do("depart", data)

    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        self._do("reset", data)

    @precondition(lambda self: self.serving is not None and self.serving.engine.connector.next_job)
    @rule(data=st.data())
    def misreport(self, data: st.DataObject) -> None:
        self._do("misreport", data)

    @rule(data=st.data())
    def free_twice(self, data: st.DataObject) -> None:
        self._do("free_twice", data)

    @invariant()
    def books(self) -> None:
        if self.serving is not None:
            self.serving.check()

    def teardown(self) -> None:
        if self.serving is not None:
            self.serving.drain()
