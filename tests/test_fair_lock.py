"""The turn goes to whoever has waited longest, and is neither lost nor given twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from app.fair_lock import FairLock


def test_waiting_threads_are_served_in_the_order_in_which_they_came() -> None:
    lock, order = FairLock(), []

    def ask(name: int) -> None:
        assert lock.acquire(timeout=120)
        order.append(name)
        lock.release()

    assert lock.acquire(timeout=0)
    threads = []
    for name in range(5):
        thread = threading.Thread(target=ask, args=[name])
        thread.start()
        threads.append(thread)
        while len(lock._waiting) <= name:  # Asked, not slept: the next one starts once this one stands in the queue.
            thread.join(timeout=0.001)
    lock.release()
    assert lock.acquire(timeout=120)  # The sixth in the queue, although this thread held it last.
    assert order == [0, 1, 2, 3, 4]
    lock.release()
    for thread in threads:
        thread.join()


def test_one_who_gives_up_does_not_keep_the_turn_from_the_next() -> None:
    lock = FairLock()
    assert lock.acquire(timeout=0)
    assert not lock.acquire(timeout=0.01)
    lock.release()
    assert lock.acquire(timeout=0)
    lock.release()


def test_the_turn_is_never_held_by_two_also_when_many_give_up() -> None:
    lock, inside, most = FairLock(), [0], [0]

    def ask() -> int:
        served = 0
        for _ in range(100):
            if lock.acquire(timeout=0.0005):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                inside[0] -= 1
                served += 1
                lock.release()
        return served

    with ThreadPoolExecutor(8) as pool:
        served = [future.result() for future in [pool.submit(ask) for _ in range(8)]]
    assert sum(served) > 0
    assert most == [1]
    assert lock.acquire(timeout=0)
