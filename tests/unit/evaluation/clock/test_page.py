"""Calls are handed over on a page, whatever the other side writes there."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest

from generator.evaluation.clock.page import END, SIZE, Page, Silent
from generator.evaluation.frames import is_open


@pytest.fixture
def sides() -> tuple[Page, Page]:
    file = Page.file()
    found = Page(file), Page(file)
    os.close(file)
    return found


def there() -> bool:
    return True


def until() -> float:
    return time.monotonic() + 20.0


def test_calls_come_in_order_with_what_is_said(sides: tuple[Page, Page]) -> None:
    judge, callee = sides
    seen: list[tuple[int, int]] = []

    def serve() -> None:
        number = 0
        while True:
            number += 1
            seed = callee.opened(number)
            if seed == END:
                return
            callee.ready(number)
            seen.append((seed, callee.revealed(number)))
            callee.answer(number, b'{"call": %d}' % number)

    thread = threading.Thread(target=serve)
    thread.start()
    for number in (1, 2, 3):
        judge.open(number, 10 * number)
        judge.wait_ready(number, until(), there)
        assert not judge.is_answered(number)
        judge.reveal(number, number + 4)
        judge.wait_answered(number, until(), there)
        assert judge.text() == {"call": number}
    judge.open(4, END)
    thread.join(20.0)
    assert seen == [(10, 5), (20, 6), (30, 7)]


def test_silence_ends_at_its_time_or_with_the_process(sides: tuple[Page, Page]) -> None:
    judge, _ = sides
    with pytest.raises(Silent, match="in time"):
        judge.wait_ready(1, time.monotonic() + 0.05, there)
    with pytest.raises(Silent, match="gone"):
        judge.wait_answered(1, until(), lambda: False)


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 5000, b"\xff\xfe", b'{"a": NaN'])
def test_text_that_is_no_json_is_nothing(sides: tuple[Page, Page], text: bytes) -> None:
    judge, callee = sides
    callee.answer(1, text)
    assert judge.text() is None


def test_length_that_lies_reads_nothing_beyond_the_text(
    sides: tuple[Page, Page],
) -> None:
    judge, callee = sides
    callee.answer(1, b"{}")
    callee._words[18] = 2**63
    assert judge.text() is None


def test_page_cannot_be_shortened_under_its_judge() -> None:
    file = Page.file()
    page = Page(file)
    for size in (0, 1, 2 * SIZE):
        with pytest.raises(PermissionError):
            os.ftruncate(file, size)
    os.close(file)
    assert page.text() is None


@pytest.mark.parametrize("wait", ["opened", "revealed"])
def test_callee_waits_no_longer_than_its_judge_is_there(wait: str) -> None:
    judge, channel = socket.socketpair()
    callee = Page(file := Page.file(), is_open(channel))
    os.close(file)
    threading.Timer(0.1, judge.close).start()
    begun = time.monotonic()
    with pytest.raises(Silent, match="the other process is gone"):
        getattr(callee, wait)(1)
    assert 0.09 < time.monotonic() - begun < 10.0
    channel.close()
