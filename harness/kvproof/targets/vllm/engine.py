"""vLLM's Scheduler as the targets have it: with connectors that are recorded."""

from collections.abc import Mapping
from typing import Any

from kvmodel.setting import Setting
from kvproof.obligations.workers import Workers
from kvproof.targets.vllm.known import unlike
from kvproof.targets.vllm.release import importing, installed

RELEASE = installed()  # before vllm is imported

with importing(RELEASE):
    from kvproof.targets.vllm import driver
    from kvproof.targets.vllm.driver import TOKENS_PER_BLOCK, Built, Copies, Vllm, built

__all__ = ["RELEASE", "TOKENS_PER_BLOCK", "Copies", "Engine", "driver"]

RECORDING = "kvproof.targets.vllm.recording"
"""Where vLLM finds the connectors."""


class Engine(Vllm):
    """One Scheduler of a setting, with its workers."""

    def __init__(
        self,
        connector: str,
        extra: Mapping[str, Any],
        copies: Copies,
        setting: Setting,
        workers: Workers,
    ) -> None:
        self.scope = setting.scope
        super().__init__(_built(connector, extra, setting), copies, workers, setting.contract.depth)

    def submitted(self, number: int) -> None:
        """Submit a request of the scope, which decodes as many blocks as that says."""
        scope = self.scope
        self.submit(number, scope.prompts[number], len(scope.decoded[number]) if scope.decoded else scope.decode)


def _built(connector: str, extra: Mapping[str, Any], setting: Setting) -> Built:
    """Raises Unreadable where vLLM takes no such configuration."""
    scope, depth = setting.scope, setting.contract.depth
    try:
        return built(connector, tuple(sorted(extra.items())), scope.device_blocks, scope.workers, depth, RECORDING)
    except Exception as error:
        raise unlike(RELEASE, error) from error
