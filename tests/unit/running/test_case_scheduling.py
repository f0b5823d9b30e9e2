"""How tests are handed out: workers of a simulated run, whose tests take given times."""

from __future__ import annotations

import heapq
import itertools
import math
from types import SimpleNamespace

import pytest
from xdist.remote import Producer

from generator.running.case_scheduling import CaseScheduling
from generator.running.run_plan import Plan


class Node:
    """A worker: what it was given, and whether it was told to end."""

    def __init__(self, name, place):
        self.gateway = SimpleNamespace(id=name)
        self.place, self.queue, self.shutting_down = place, [], False

    def send_runtest_some(self, tests):
        assert not self.shutting_down
        self.queue += tests

    def shutdown(self):
        self.shutting_down = True


class Run:
    """Run tests of known durations on workers of GPUs of some capacities.

    `cases` are (seconds, tests, bytes); the definition of each is its number. A worker
    runs a test when it knows the next, or that there is none; that is xdist's way.
    """

    def __init__(self, cases, workers, capacities=(math.inf,), compilation=None):
        self.capacities = capacities
        self.seconds = [s / n for s, n, _ in cases for _ in range(n)]
        self.needs = [b for _, n, b in cases for _ in range(n)]
        self.case = [k for k, (_, n, _) in enumerate(cases) for _ in range(n)]
        plan = Plan([(n, b, str(k)) for k, (_, n, b) in enumerate(cases)])
        spread = SimpleNamespace(
            plan=lambda: plan,
            room=lambda n: (n.place, capacities[n.place]),
            warm=lambda live: compilation,
        )
        tx = [f"{workers}*popen"]
        options = {"tx": tx, "maxschedchunk": None}
        config = SimpleNamespace(getvalue=options.get, getoption=options.get)
        self.schedule = CaseScheduling(config, Producer("test", enabled=False), spread)
        self.collection = [f"test{n}" for n in range(len(self.seconds))]
        places = range(len(capacities))
        self.nodes = [Node(f"gw{n}", places[n % len(places)]) for n in range(workers)]
        for node in self.nodes:
            self.add(node)
        self.done, self.ran, self.running, self.most = [], {}, [], 0.0
        self.now, self.crashes, self.ticket = 0.0, set(), itertools.count()

    def add(self, node):
        self.schedule.add_node(node)
        self.schedule.add_node_collection(node, self.collection)

    def go(self):
        """Run to the end; return the seconds that it took."""
        self.schedule.schedule()
        self._start()
        while self.running:
            self.now, _, node, index = heapq.heappop(self.running)
            if index in self.crashes:
                self.crashes.remove(index)
                self._replace(node, index)
            else:
                self.done.append(index)
                self.ran.setdefault(self.case[index], set()).add(node.gateway.id)
                self.schedule.mark_test_complete(node, index, self.seconds[index])
            self._start()
        assert self.schedule.tests_finished
        assert not self.schedule.has_pending
        return self.now

    def _replace(self, node, index):
        node.shutting_down = True
        self.nodes.remove(node)
        assert self.schedule.remove_node(node) == self.collection[index]
        fresh = Node(f"{node.gateway.id}'", node.place)
        self.nodes.append(fresh)
        self.add(fresh)
        self.schedule.schedule()

    def _start(self):
        busy = {id(node) for _, _, node, _ in self.running}
        for node in self.nodes:
            ready = len(node.queue) > 1 or (node.queue and node.shutting_down)
            if id(node) not in busy and ready:
                index = node.queue.pop(0)
                end = self.now + self.seconds[index]
                heapq.heappush(self.running, (end, next(self.ticket), node, index))
        for place, capacity in enumerate(self.capacities):
            at_work = [i for _, _, n, i in self.running if n.place == place]
            held = sum(self.needs[i] for i in at_work if self.needs[i] <= capacity)
            self.most = max(self.most, held / capacity)


def test_every_test_runs_once_and_a_case_stays_with_one_worker():
    run = Run([(10.0 / (k + 1), 1 + k % 5, 0) for k in range(60)], workers=7)
    run.go()
    assert sorted(run.done) == list(range(len(run.seconds)))
    assert all(len(workers) == 1 for workers in run.ran.values())


@pytest.mark.parametrize("workers", [1, 2, 16, 64])
def test_no_worker_ends_long_after_the_others(workers):
    # as a suite is: few long cases, many short ones
    cases = sorted([(40.0 / k, 1 + k % 9, 0) for k in range(1, 600)], reverse=True)
    best = max(40.0, sum(seconds for seconds, _, _ in cases) / workers)
    assert Run(cases, workers).go() <= 1.1 * best


def test_more_workers_than_cases():
    run = Run([(3.0, 2, 0), (1.0, 1, 0)], workers=8)
    assert run.go() == 3.0


def test_no_tests_at_all():
    run = Run([], workers=2)
    assert run.go() == 0.0


def test_cases_that_do_not_fit_beside_each_other_wait_and_small_ones_go_on():
    large = [(10.0, 4, 60)] * 6
    small = [(1.0, 5, 1)] * 200
    run = Run([*large, *small], workers=8, capacities=(130,))
    seconds = run.go()
    assert run.most <= 1.0
    assert sorted(run.done) == list(range(len(run.seconds)))
    # two at a time: 30 s; the other six workers do the 200 s of the small ones meanwhile
    assert seconds <= 40.0


def test_workers_that_all_wait_for_each_others_room_are_fewer_then():
    # 60 + 60 run first; each would wait, its last test not run, for room for 120
    cases = [(10.0, 3, 60), (10.0, 3, 60), (9.0, 3, 120), (8.0, 3, 120)]
    run = Run(cases, workers=2, capacities=(130,))
    run.go()
    assert run.most <= 1.0
    assert sorted(run.done) == list(range(12))


def test_what_fits_nowhere_takes_no_room():
    run = Run([(0.0, 3, 500), (5.0, 2, 100), (0.0, 3, 500)], 2, capacities=(130,))
    assert run.go() == 5.0
    assert sorted(run.done) == list(range(8))


def test_a_case_for_the_larger_gpu_waits_for_it():
    cases = [(4.0, 2, 100), (4.0, 2, 100), (4.0, 2, 10)]
    run = Run(cases, workers=4, capacities=(130, 24))
    run.go()
    by_place = {node.gateway.id: node.place for node in run.nodes}
    assert {by_place[name] for name in run.ran[0] | run.ran[1]} == {0}
    assert run.most <= 1.0


@pytest.mark.parametrize("workers", [1, 3])
def test_after_a_crash_a_fresh_worker_goes_on(workers):
    run = Run([(6.0 - k, 3, 50) for k in range(6)], workers, capacities=(130,))
    run.crashes = {1, 8}
    run.go()
    # the test that a worker died of is not run again
    assert sorted(run.done) == [i for i in range(18) if i not in (1, 8)]


def test_a_plan_of_other_tests_spreads_them_one_by_one():
    run = Run([(1.0, 2, 0)] * 3, workers=2)
    run.collection.pop()
    run.schedule.node2collection = dict.fromkeys(run.nodes, run.collection)
    run.go()
    assert sorted(run.done) == list(range(5))


class Compilation:
    """Compilers that tell one definition after the other, at the times of a run."""

    def __init__(self, ready):
        self.ready, self.cold, self.waited = dict(ready), set(ready), 0
        self.finished = False

    def take(self, *, wait):
        """Pass to the next definition, if somebody waits, or to those whose time it is."""
        left = {n: at for n, at in self.ready.items() if n in self.cold}
        if wait:
            name = min(left, key=left.get)
            assert left[name] > self.run.now, "what is ready is told without waiting"
            self.run.now, self.waited = left[name], self.waited + 1
        self.cold -= {name for name, at in left.items() if at <= self.run.now}

    def finish(self):
        self.cold, self.finished = set(), True


def compiling(cases, workers, ready):
    compilation = Compilation(ready)
    compilation.run = Run(cases, workers, compilation=compilation)
    return compilation.run, compilation


def test_tests_whose_kernels_are_compiled_run_meanwhile():
    # the longest needs the module that takes longest
    cases = [(9.0, 3, 0)] + [(1.0, 2, 0)] * 30
    run, compilation = compiling(cases, 2, {"0": 8.0, "5": 4.0})
    seconds = run.go()
    assert sorted(run.done) == list(range(63))
    assert all(len(workers) == 1 for workers in run.ran.values())
    assert compilation.waited == 0
    # 39 s of tests for two workers; the long case begins at 8 s
    assert seconds <= 23.0
    assert run.done.index(0) > 8


def test_a_gpu_has_room_for_what_is_called_to_compile_kernels():
    # of the first definition, 60 bytes are called until 9 s; 200 fit nowhere
    cases = [(1.0, 2, 60), (1.0, 2, 200), *[(3.0, 2, 50)] * 4]
    compilation = Compilation({"0": 9.0, "1": 20.0})
    run = compilation.run = Run(cases, 4, capacities=(100,), compilation=compilation)
    begun = []
    hand_out = run._start
    run._start = lambda: (hand_out(), begun.append((run.now, len(run.running))))
    run.go()
    assert sorted(run.done) == list(range(12))
    # cases of 50 wait, as 60 and 50 are more than 100; what fits nowhere holds nobody up
    assert min(now for now, running in begun if running) == 9.0


def test_workers_wait_where_all_else_is_done():
    cases = [(2.0, 2, 0), (3.0, 2, 0), (1.0, 1, 0)]
    run, compilation = compiling(cases, 2, {"0": 50.0, "1": 60.0})
    # a case's last test waits with its worker for the next case
    assert run.go() == 64.0
    assert compilation.waited == 2
    assert sorted(run.done) == list(range(5))


def test_tests_of_another_plan_wait_for_all_compilers():
    run, compilation = compiling([(1.0, 2, 0)] * 3, 2, {"1": 5.0})
    run.collection.pop()
    run.schedule.node2collection = dict.fromkeys(run.nodes, run.collection)
    run.go()
    assert compilation.finished
    assert sorted(run.done) == list(range(5))
