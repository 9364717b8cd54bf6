"""The queue as the web sees it: asking for a run, and taking that back. The table `runs` is all there is of it.

A worker holds a run by a lease on its row (leases.py). Every change of state is one conditional UPDATE, so a final state is
never left and a run is never carried out twice at a time:

    ask       nothing -> queued        in the transaction that counts the quota
    take      queued -> running        owner and take say by whom; take grows each time
    beat      running                  every second, while the run goes on; the answer says whether to go on
    release   running -> queued        the worker was told to stop, or could not reach the database
    end       running -> done, failed, timed_out, cancelled       only under the take that was given
    cancel    queued -> cancelled; running: a flag that the next beat carries to the worker

A run whose worker died is taken up again: at once by the next worker of the same slot, whose lock proves the death; by any
other after SILENT_SECONDS without a beat, counted on the observer's own clock, so that no two clocks need to agree.

DBOS 3.4 was measured for this and left out. On two busy cores, one SQLite file with a rollback journal: asking to start 105 ms
at the median (p95 397 ms), against 47 ms (91 ms) for a lease polled at 50 ms; a worker of 70 MB against 49 MB; running again
2.4 s after kill -9 against 0.7 s. What decided: when the disk filled while an outcome was being recorded, the workflow stayed
PENDING for ever in a worker that lived on, also after space had come back, because recovery happens only at a start. Our own
row would have needed a lease beside it all the same, and one truth is simpler than two.
"""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from app.db import insert_unless_there
from app.errors import QueueFull, QuotaExceeded, RunNotFound, RunRejected
from app.runs import sharing
from app.runs.store import ALIVE, State, earlier, get, has_id, same_and_alive
from app.runs.stored import FORMAT, Failure
from app.settings import Settings
from app.tables import learners, run_requests, runs
from kernels.spec import Fault, RunSpec, to_json

ID_BYTES = 16
QUOTA_WINDOW = timedelta(hours=1)
COUNTED = (*ALIVE, State.DONE.value)
ASKED_TIMES = 3  # so many times the quota may be asked for, runs that brought no result included
MOST_WAITING = 10  # of one learner
MOST_QUEUED = 500
KEPT_FOR_KNOWN = 100  # of these, for learners who had a run before: newcomers alone, however many, do not fill the queue
USUAL_SECONDS = 2  # what one run takes, about

Shared = Literal["new", "joined", "earlier"]


@dataclass(frozen=True)
class Asked:
    """The run that answers a request: one of one's own, one under way that was joined, or an earlier result."""

    run_id: str
    shared: Shared


def ask(session: Session, learner_id: str, spec: RunSpec, *, settings: Settings, fresh: bool = False) -> Asked:
    """Ask for a run. `fresh` wants it measured now, even where there is an earlier result.

    Only a run of one's own counts against the quota, and only while it is alive or once it has brought a result: nobody pays
    for our failures. Whatever was asked for counts against a larger limit, so that asking and cancelling has an end too.
    Raises RunRejected, QuotaExceeded or QueueFull.
    """
    _refuse_impossible(spec, settings)
    _make_and_hold_learner(session, learner_id)
    if not fresh and (found := earlier(session, spec)) is not None:
        return _shared(session, learner_id, found.id, "earlier")
    while (joined := _hold_alive(session, spec)) is None:
        _refuse_beyond_quota(session, learner_id, settings.run_quota)
        _refuse_when_full(session, learner_id)
        run_id = secrets.token_urlsafe(ID_BYTES)
        if insert_unless_there(session, runs, _new_row(run_id, learner_id, spec, settings)):
            return _shared(session, learner_id, run_id, "new")
        # Another transaction was first to ask for the same; unless that run has ended since, it is joined.
    return _shared(session, learner_id, joined, "joined")


def _refuse_impossible(spec: RunSpec, settings: Settings) -> None:
    if not settings.runs:
        raise RunRejected([Fault("runs", "off", "real runs are switched off on this installation")])
    if faults := sharing.request_faults(spec, settings.max_world_size):
        raise RunRejected(faults)


def _make_and_hold_learner(session: Session, learner_id: str) -> None:
    """Keep the learner's row until the transaction ends, so that a quota is not spent twice."""
    while not _hold_learner(session, learner_id):
        insert_unless_there(session, learners, {"id": learner_id, "created_at": datetime.now(UTC)})


def _hold_learner(session: Session, learner_id: str) -> bool:
    """Always before any row of runs: whoever deletes a learner's data locks in this order."""
    mine = select(learners.c.id).where(learners.c.id == learner_id).with_for_update()
    return session.execute(mine).first() is not None


def _hold_alive(session: Session, spec: RunSpec) -> str | None:
    """The id of the run to join, kept from being cancelled until the transaction ends."""
    return session.execute(select(runs.c.id).where(*same_and_alive(spec)).with_for_update()).scalar_one_or_none()


def _refuse_beyond_quota(session: Session, learner_id: str, quota: int) -> None:
    if quota == 0:
        raise QuotaExceeded("Here nobody may start a run; results that are stored can still be seen.", retry_seconds=3600)
    since = datetime.now(UTC) - QUOTA_WINDOW
    mine = select(runs.c.asked_at, runs.c.state).where(runs.c.asked_by == learner_id, runs.c.asked_at > since)
    rows = session.execute(mine.order_by(runs.c.asked_at)).all()
    _refuse_beyond([row.asked_at for row in rows if row.state in COUNTED], quota, since, "started",
                   "Results that are already here can be seen at any time.")
    _refuse_beyond([row.asked_at for row in rows], ASKED_TIMES * quota, since, "asked for",
                   "Those that brought no result are among them.")


def _refuse_beyond(times: list[datetime], most: int, since: datetime, what: str, remark: str) -> None:
    if len(times) < most:
        return
    seconds = max(1, round((times[-most] - since).total_seconds()))
    minutes = -(-seconds // 60)
    raise QuotaExceeded(
        f"You have {what} {_counted(len(times), 'run')} in the last hour, and {most} is the most here. The next can start "
        f"in {_counted(minutes, 'minute')}. {remark}",
        retry_seconds=seconds,
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _refuse_when_full(session: Session, learner_id: str) -> None:
    waiting = select(func.count()).select_from(runs).where(runs.c.state == State.QUEUED)
    mine = session.execute(waiting.where(runs.c.asked_by == learner_id)).scalar_one()
    if mine >= MOST_WAITING:
        raise QueueFull(
            f"{mine} runs of yours are waiting, the most at a time. Nothing was stored; ask again once one has started, or "
            "cancel one.",
            retry_seconds=mine * USUAL_SECONDS // 4,
        )
    queued = session.execute(waiting).scalar_one()
    if queued >= MOST_QUEUED or (queued >= MOST_QUEUED - KEPT_FOR_KNOWN and not _was_served(session, learner_id)):
        raise QueueFull(
            f"{queued} runs are waiting, and more would wait too long. Nothing was stored; try again in a few minutes.",
            retry_seconds=queued * USUAL_SECONDS // 4,
        )


def _was_served(session: Session, learner_id: str) -> bool:
    started = select(runs.c.number).where(runs.c.asked_by == learner_id, runs.c.started_at.is_not(None))
    return session.execute(started.limit(1)).first() is not None


def _new_row(run_id: str, learner_id: str, spec: RunSpec, settings: Settings) -> dict[str, Any]:
    return {
        "id": run_id,
        "asked_by": learner_id,
        "format": FORMAT,
        "spec": to_json(replace(spec, time_limit_seconds=settings.run_seconds)),
        "spec_key": sharing.spec_key(spec),
        "state": State.QUEUED.value,
        "asked_at": datetime.now(UTC),
        "cancel_requested": False,
        "repeatable": False,
        "take": 0,
        "losses": 0,
        "beat": 0,
    }


def _shared(session: Session, learner_id: str, run_id: str, shared: Shared) -> Asked:
    """Note that this learner waits for the run or was shown it, last of all; whoever had withdrawn waits again."""
    row = {"learner_id": learner_id, "run_id": run_id, "asked_at": datetime.now(UTC), "withdrawn": False}
    if not insert_unless_there(session, run_requests, row):
        mine = (run_requests.c.learner_id == learner_id, run_requests.c.run_id == run_id)
        session.execute(update(run_requests).where(*mine).values(withdrawn=False, asked_at=row["asked_at"]))
    return Asked(run_id, shared)


class Cancelled(StrEnum):
    """What became of a request to cancel."""

    ENDED = "ended"  # it was waiting and is cancelled now
    ENDING = "ending"  # it was running; its worker ends it within a second or two
    SHARED = "shared"  # others wait for it as well, so it goes on without this learner
    OVER = "over"  # it had ended before
    NOT_YOURS = "not yours"  # this learner never asked for it


def cancel(session: Session, run_id: str, learner_id: str) -> Cancelled:
    """Take a request back. The run ends unless somebody else waits for it. Raises RunNotFound."""
    if not _hold_learner(session, learner_id):
        return _not_yours(session, run_id)
    # Whoever takes, ends, joins or cancels a run needs its row, so holding it puts their order beyond doubt.
    row = session.execute(select(runs).where(has_id(run_id)).with_for_update()).one_or_none()
    if row is None:
        raise RunNotFound(run_id)
    mine = (run_requests.c.run_id == run_id, run_requests.c.learner_id == learner_id)
    if session.execute(select(run_requests.c.run_id).where(*mine)).first() is None:
        return Cancelled.NOT_YOURS
    if row.state not in ALIVE:
        return Cancelled.OVER
    session.execute(update(run_requests).where(*mine).values(withdrawn=True))
    others = select(run_requests.c.run_id).where(run_requests.c.run_id == run_id, ~run_requests.c.withdrawn)
    if session.execute(others).first() is not None:
        return Cancelled.SHARED
    as_seen = update(runs).where(runs.c.id == run_id, runs.c.state == row.state)
    if row.state == State.RUNNING:
        session.execute(as_seen.values(cancel_requested=True))
        return Cancelled.ENDING
    session.execute(as_seen.values(state=State.CANCELLED.value, ended_at=datetime.now(UTC), failure=asdict(WHILE_QUEUED)))
    return Cancelled.ENDED


def leave(session: Session, learner_id: str) -> None:
    """Take back all that this learner waits for, before the learner's data is deleted: afterwards nobody could."""
    _hold_learner(session, learner_id)
    mine = select(runs.c.id).join(run_requests, run_requests.c.run_id == runs.c.id)
    mine = mine.where(run_requests.c.learner_id == learner_id, ~run_requests.c.withdrawn, runs.c.state.in_(ALIVE))
    for run_id in session.execute(mine.order_by(runs.c.number)).scalars().all():
        cancel(session, run_id, learner_id)


WHILE_QUEUED = Failure(
    "The run was cancelled while it waited for its turn. You can start it again at any time.",
    exit="cancelled",
    phase="waiting for its turn",
)


def _not_yours(session: Session, run_id: str) -> Cancelled:
    get(session, run_id)
    return Cancelled.NOT_YOURS
