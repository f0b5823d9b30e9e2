"""A sandbox that waits for its next session."""

from __future__ import annotations

import time
from contextlib import closing

from generator.evaluation.confined import Confinement
from generator.evaluation.session import Allowed


def test_a_sandbox_that_ended_while_it_waited_is_replaced() -> None:
    with closing(Confinement("cpu", Allowed())) as confinement:
        with closing(confinement.open()):
            first = confinement._thread
        confinement.prepare()
        confinement._stop.set()
        first.join()
        with closing(confinement.open()) as session:
            assert session.state()["changed"] == []
        assert confinement._thread is not first


def test_a_session_that_was_prepared_is_the_next_one_and_no_other() -> None:
    with closing(Confinement("cpu", Allowed())) as confinement:
        confinement.prepare()
        begun = confinement._begun
        confinement.prepare()
        assert confinement._begun is begun is not None
        with closing(confinement.open()) as session:
            assert session.keeper is begun[0]
            assert confinement._begun is None


def test_a_session_that_waits_is_there_at_once() -> None:
    with closing(Confinement("cpu", Allowed())) as confinement:
        waited = []
        for _ in range(4):
            confinement.prepare()
            time.sleep(0.5)
            begun = time.monotonic()
            confinement.open().close()
            waited.append(time.monotonic() - begun)
        assert min(waited) < 0.9
