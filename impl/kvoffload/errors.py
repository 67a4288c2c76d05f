"""Every refusal of the offloading subsystem. A refusal leaves all state as it was."""


class KVOffloadError(Exception):
    """Base of all refusals."""


class DoubleFree(KVOffloadError):
    """A block was released more often than it was referenced."""


class UnknownBlock(KVOffloadError):
    """A block id outside of the pool."""


class OutOfBlocks(KVOffloadError):
    """Not enough free blocks now; retry when something was released."""


class NotBound(KVOffloadError):
    """The device pool is not bound yet (vLLM PR 39726: a reset before binding is a caller's error, not a no-op)."""


class UnknownJob(KVOffloadError):
    """A completion for a job id that was never issued."""


class NoDeadline(KVOffloadError):
    """A transfer was to expire on an engine whose transfers have no deadline: there a late one is waited for."""


class NotOutstanding(KVOffloadError):
    """A transfer that is complete, was dropped, or was never launched cannot expire."""


class ShutDown(KVOffloadError):
    """A worker was declared dead: the engine serves nobody any more. Start another one."""


class UnknownRequest(KVOffloadError):
    """No such request, or it has already ended."""


class WrongPhase(KVOffloadError):
    """The request exists, but what was asked for makes no sense in its present phase."""


class NothingToLaunch(KVOffloadError):
    """A launch that would carry neither compute nor copies, or that would overtake the step before it."""


class NotRunnable(KVOffloadError):
    """The oldest operation of this stream still waits for something, or there is none."""


class Hang(KVOffloadError):
    """A stream did not reach a quiescent state before the watchdog's deadline."""
