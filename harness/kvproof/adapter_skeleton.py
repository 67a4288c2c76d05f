"""An adapter for kvproof: what each of its commands means to your engine, and what can be seen of the engine after it.

Fill in the methods that are marked @abstractmethod, and remove the mark of each when you have. Then

    kvproof check --target FILE:MyEngine

gives random commands to your engine and to the reference machine, and compares the two after each. Until all marks are
gone it says which are left.

Numbers: blocks, requests and workers count from 0. A key is a positive number that stands for a block's whole prefix;
0 is no key. Jobs have the ids that come of counting them as they are made, loads and stores together, from 0.
"""

from abc import ABC, abstractmethod

from kvmodel import Contract
from kvmodel.setting import Setting
from kvproof.targets.outcome import Answer
from kvproof.targets.target import StepTarget
from kvproof.targets.view import View


class MyEngine(StepTarget, ABC):
    """The engine under check. It may choose as it likes, wherever the contract leaves a choice."""

    # Who owns the blocks of a copy until it is reported: under "pinning" the transfer job holds a reference on each,
    # under "fencing" whoever reuses a block waits for the copy. Other modes are fields of Contract, such as
    # store_mode="lazy" or depth=2 for asynchronous scheduling.
    contract = Contract("pinning")

    # What a reset may mean: "invalidate", the weights changed; "evict", the contents stay true.
    meanings = ("invalidate",)

    # Whether a reset can let running requests keep their blocks.
    survivors = False

    # The exceptions by which your engine refuses what cannot be done now. A refusal must change nothing. Whatever else
    # it raises is reported as a violation.
    refusals: tuple[type[Exception], ...] = ()

    # With `alone` (see kvproof/targets/alone.py) what fails is kept as a test that needs no kvproof, too.

    # If the engine lacks something, delete the method and take its verb away, as in
    # verbs = StepTarget.verbs - {"preempt"}

    @abstractmethod
    def __init__(self, setting: Setting) -> None:
        """A fresh engine of these sizes.

        setting.scope has device_blocks, host_blocks and workers (counts); setting.prompt_keys[request] the keys of a
        request's prompt, one for each block, and setting.total_keys[request] the same with the blocks that it decodes.
        Prefer symbolic workers, which only keep queues: then `run` decides when each operation happens.
        """

    # The client.

    @abstractmethod
    def submit(self, request: int) -> Answer:
        """The request begins to wait. Return Answer()."""

    @abstractmethod
    def preempt(self, request: int) -> Answer:
        """A running or loading request gives up its blocks and waits again. Return Answer()."""

    @abstractmethod
    def abort(self, request: int) -> Answer:
        """The request ends, in whatever phase it is. Return Answer()."""

    @abstractmethod
    def reset(self, meaning: str, requests: str) -> Answer:
        """Empty the prefix caches of both tiers. Return Answer(True or False), as your engine answers: True says that
        nothing from before is left, in flight or cached.

        requests  "preempt": the running ones start again; "keep": they keep their blocks (only with `survivors`)
        """

    # The scheduler.

    @abstractmethod
    def schedule(self) -> Answer:
        """One call of your scheduler. Return Answer(None, observed), where observed has, in any order, an action for
        each thing that the call did (from kvmodel import actions as act):

        act.Finish(request)    it is wholly computed and has ended
        act.Wake(request)      its load is complete and it runs
        act.PreemptUnderPressure(request), act.Grow(request, (block,))
        act.Admit(request, act.Admission(device hits, host hits that are loaded, fresh blocks)), three tuples of blocks:
                               the first fresh ones are the destinations of the load
        act.Launch(act.Launching(computes, stores, (), flush)), if anything went to the workers:
                               computes  (request, start, end) for each: table[start:end] is computed
                               stores    (kvmodel.transfer_job.NONE, pairs) for each store job made now, in the order of
                                         their ids; with "fencing" the request in place of NONE
                               flush     ids of the jobs whose copies must run before anything of this launch
        """

    @abstractmethod
    def handle_output(self) -> Answer:
        """The scheduler handles the output of the oldest launched step. Return Answer(None, observed), where observed
        may have act.Finish of those that ended with it."""

    # The workers.

    @abstractmethod
    def run(self, worker: int, stream: str) -> Answer:
        """The oldest operation of a worker's stream ("compute", "store" or "load") happens. Refuse if there is none, or
        if it still waits for another one. Return Answer()."""

    @abstractmethod
    def report(self, worker: int, job: int) -> Answer:
        """A worker's completion of one job reaches the scheduler. Return Answer(None, observed), where observed may
        have act.Wake of a request whose load is complete now."""

    @abstractmethod
    def report_all(self, worker: int) -> Answer:
        """All that a worker has copied and not reported reaches the scheduler, by job id. As `report`."""

    # What is seen.

    @abstractmethod
    def view(self) -> View:
        """What can be seen now. Each field that you give is compared, and the screen says how many were; one that you
        leave out is not. Begin with device_refs, device_keys, host_refs and host_keys, a tuple with a number for each
        block; kvproof.targets.view.View says what the others are."""
