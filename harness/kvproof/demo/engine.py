"""An engine for the tutorial: kvoffload with a connector of its own, in which one line is wrong.

The connector follows `fencing`: a request that goes away gives back device blocks that a store still reads, and whoever
reuses them waits for it. But the blocks that a load writes belong to the request until the load is done.
"""

from kvmodel import Contract
from kvoffload.config import Config
from kvoffload.connectors.fencing import FencingConnector
from kvoffload.engine import Engine
from kvoffload.request import Request
from kvoffload.transfer_job import TransferJob
from kvproof.targets.kvoffload import Ledger


class DemoConnector(FencingConnector):
    """The connector of kvoffload, but for what becomes of a load whose request goes away."""

    __slots__ = ()

    def _abandon(self, load: TransferJob, request: Request) -> bool:
        """The request is aborted or preempted while its load runs. True: it keeps its blocks until the load is done;
        False: they are free at once."""
        return False


class Demo(Ledger):
    """The adapter: that of kvoffload, with this connector."""

    disciplines = ("fencing",)
    contract = Contract("fencing")

    def create(self, config: Config) -> Engine:
        return Engine.create(config, DemoConnector)
