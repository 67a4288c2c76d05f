"""Another engine, followed: its result also says what it took of the machine. For `kvproof coverage`."""

from dataclasses import replace

from kvproof.job import Cut, Job, Progress, load_engine
from kvproof.report.coverage import GUARD
from kvproof.search.coverage import recording
from kvproof.search.following import following
from kvproof.verdict import Result

NAME = "kvproof.engines.followed:run"


def followed(job: Job) -> Job:
    """The same job, followed. Guards are counted here, for every engine, so that the engine itself does not."""
    options = {name: value for name, value in job.options.items() if name != "coverage"}
    return replace(job, engine=NAME, options={**options, "followed": job.engine})


def run(job: Job, progress: Progress, cut: Cut) -> Result:
    """Option `followed` names the engine."""
    name = job.options["followed"]
    assert isinstance(name, str)
    engine = load_engine(name)
    with recording() as guards, following() as steps:
        result = engine(replace(job, engine=name), progress, cut)
    answers = {f"{GUARD}{answer}": count for answer, count in guards.items()}
    return replace(result, counts={**result.counts, **answers, **steps.counts()})
