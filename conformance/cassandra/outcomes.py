"""The outcome of each test of a suite on two nodes, compared test by test.

A test whose outcomes differ is run again, on fresh nodes of both kinds. What stock itself answers
now so and now so is unsteady, and no difference; everything else that is not equal is one. A suite
names the tests that meet a documented limit of ours; one that is named and does not differ is a
fault of the list.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from node import KINDS, OURS, STOCK, CannotRun, Node

PASSED = "passed"
FAILED = "failed"
SKIPPED = "skipped"
ABSENT = "did not run"
OUTCOMES = (PASSED, FAILED, SKIPPED, ABSENT)

REPEATS = 3

# How a test ended, and what it said.
Outcome = collections.namedtuple("Outcome", "ended said")


class Suite:
    """What a suite of a peer has to tell. `prepare` gets it, and `run` runs it, or some tests."""

    name = ""
    # Tests that differ by a documented limit, each with its reason.
    limits = {}
    settings = {}
    java_options = ()

    def prepare(self, folder):
        raise NotImplementedError

    def run(self, node, only=()):
        """The outcomes by name, of the tests `only` or of all."""
        raise NotImplementedError


class Comparison:
    """Both nodes' outcomes of one suite."""

    def __init__(self, suite, first):
        self.suite = suite
        self.first = first
        self.again = {kind: [] for kind in KINDS}
        names = {**first[STOCK], **first[OURS]}
        self.names = list(names)

    def ended(self, kind, name):
        return ended(self.first[kind], name)

    def differing(self):
        return [name for name in self.names
                if self.ended(STOCK, name) != self.ended(OURS, name)]

    def all_ended(self, kind, name):
        return [self.ended(kind, name)] + [ended(run, name) for run in self.again[kind]]

    def is_unsteady(self, name):
        """Whether stock alone shows that the test's outcome means nothing."""
        return len(set(self.all_ended(STOCK, name))) > 1

    def is_equal(self):
        return not self.different() and not self.excused_in_vain()

    def different(self):
        return [name for name in self.differing()
                if not self.is_unsteady(name) and name not in self.suite.limits]

    def limited(self):
        return [name for name in self.differing() if name in self.suite.limits]

    def excused_in_vain(self):
        return [name for name in self.suite.limits if name not in self.differing()]

    def unsteady(self):
        return [name for name in self.differing()
                if self.is_unsteady(name) and name not in self.suite.limits]

    def count(self, kind, what):
        return sum(self.ended(kind, name) == what for name in self.names)

    def said(self, kind, name):
        runs = [self.first[kind], *self.again[kind]]
        words = [run[name].said for run in runs if name in run and run[name].ended == FAILED]
        return words[0].strip() if words else ""

    def facts(self):
        """For programs."""
        return {
            "suite": self.suite.name,
            "tests": len(self.names),
            **{kind: {what: self.count(kind, what) for what in OUTCOMES} for kind in KINDS},
            "equal": self.is_equal(),
            "limits": {name: self.suite.limits[name] for name in self.limited()},
            "excused in vain": self.excused_in_vain(),
            "different": {name: {kind: self.all_ended(kind, name) for kind in KINDS}
                          for name in self.different()},
            "unsteady": {name: {kind: self.all_ended(kind, name) for kind in KINDS}
                         for name in self.unsteady()},
            "outcomes": {name: {kind: self.ended(kind, name) for kind in KINDS}
                         for name in self.names},
        }

    def show(self):
        print(f"{self.suite.name}: {len(self.names)} tests")
        print(f"  {'node':<8}" + "".join(f"{what:>13}" for what in OUTCOMES))
        for kind in KINDS:
            print(f"  {kind:<8}" + "".join(f"{self.count(kind, what):>13}" for what in OUTCOMES))
        alike = [name for name in self.names
                 if self.ended(STOCK, name) == self.ended(OURS, name) == FAILED]
        for name in alike:
            print(f"  fails on both: {name}: {last_line(self.said(STOCK, name))}")
        for name in self.unsteady():
            print(f"  unsteady on stock: {name}: {self.all_told(name)}")
        for name in self.limited():
            print(f"  a limit of ours: {name}: {self.all_told(name)}: {self.suite.limits[name]}")
        for name in self.excused_in_vain():
            print(f"  NO LONGER DIFFERENT: {name}: take it off the list of limits")
        for name in self.different():
            print(f"  DIFFERENT: {name}: {self.all_told(name)}")
            for line in self.said(OURS, name).splitlines()[-12:]:
                print(f"    {line}")
        print("  " + self.verdict(), flush=True)

    def verdict(self):
        if not self.is_equal():
            return "NOT equal"
        number = len(self.limited())
        return f"equal but for {number} of a documented limit" if number else "equal"

    def all_told(self, name):
        return "; ".join(f"{kind} {', '.join(self.all_ended(kind, name))}" for kind in KINDS)


def ended(run, name):
    return run[name].ended if name in run else ABSENT


def last_line(text):
    return text.splitlines()[-1].strip()[:160] if text else ""


def compare(suite, folder):
    """Runs a suite on a fresh node of each kind, and what differs several times more."""
    suite.prepare(folder)

    def on_fresh_node(kind, act):
        begin = time.monotonic()
        with Node(folder / kind, kind, suite.settings, suite.java_options) as node:
            result = act(node)
        print(f"{suite.name} on {kind}: {time.monotonic() - begin:.0f} s", file=sys.stderr)
        return result

    comparison = Comparison(suite, {kind: on_fresh_node(kind, suite.run) for kind in KINDS})
    if not any(comparison.count(STOCK, what) for what in (PASSED, FAILED)):
        raise CannotRun(f"{suite.name} ran no test on the stock node")
    differing = comparison.different()
    if differing:
        comparison.again = {
            kind: on_fresh_node(
                kind, lambda node: [suite.run(node, differing) for _ in range(REPEATS)])
            for kind in KINDS}
    return comparison


@contextlib.contextmanager
def scratch():
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        yield pathlib.Path(folder)


def main(suites, description):
    """Exit status: 0 equal test by test but for documented limits, 1 different, 2 could not run."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--only", metavar="SUITE", choices=[suite.name for suite in suites])
    options.add_argument("--json", action="store_true", help="print facts for programs")
    arguments = options.parse_args()
    comparisons = []
    try:
        for suite in suites:
            if arguments.only in (None, suite.name):
                with scratch() as folder:
                    comparisons.append(compare(suite, folder))
                if not arguments.json:
                    comparisons[-1].show()
    except (CannotRun, subprocess.TimeoutExpired) as error:
        print(f"cannot run: {error}", file=sys.stderr)
        sys.exit(2)
    if arguments.json:
        print(json.dumps([comparison.facts() for comparison in comparisons], indent=1))
    sys.exit(0 if all(comparison.is_equal() for comparison in comparisons) else 1)
