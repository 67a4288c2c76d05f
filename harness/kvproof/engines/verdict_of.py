"""The verdict that a failure stands for: a violation, or something about robustness."""

import dataclasses

from kvproof.failure import Failure
from kvproof.job import Job
from kvproof.obligations.watched import fault_in
from kvproof.targets.registry import MACHINE, load
from kvproof.verdict import Verdict


def verdict_of(job: Job, failure: Failure) -> tuple[Verdict, Failure]:
    """REFUTED; or FRAGILE, and the failure with its fault, where its commands have one that the target's contract with
    its environment excludes."""
    fault = "" if job.target == MACHINE else fault_in(load(job.target, job.device), failure.commands)
    if not fault:
        return Verdict.REFUTED, failure
    beyond = dataclasses.replace(failure, fault=fault, cause=(*failure.cause, "beyond", fault))
    renamed = failure.alone.replace(failure.fingerprint, beyond.fingerprint, 1)  # its test has the id as its name
    return Verdict.FRAGILE, dataclasses.replace(beyond, alone=renamed)
