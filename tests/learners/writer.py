"""A process that answers questions until it has no more or is killed: python -m tests.learners.writer URL LEARNER NAME COUNT.

It prints the submission id of each attempt once that is stored, as a server would answer its learner.
"""

from __future__ import annotations

import sys

from app.db import open_database
from app.learners import store
from app.learners.quotas import Allowance

PLENTY = Allowance("here", answers=1_000_000, learners=1_000_000)


def main(url: str, learner_id: str, name: str, count: int) -> None:
    """Answer `count` times, one transaction each."""
    database = open_database(url)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        submission_id = f"{name}-{number}"
        with database.writing() as session:
            store.record_attempt(session, learner_id, "ring", "first", 0, str(number), "wrong", submission_id, PLENTY)
        print(submission_id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
