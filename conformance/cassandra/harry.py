#!/usr/bin/env python3
"""Apache Cassandra Harry's model checker, on stock Cassandra and on ours.

Harry derives each write, its timestamp and what a read must answer from a seed. ENTRESOL_SEED
repeats a run; without it each has a new one.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys

from node import HEAP, PORT, CannotRun, Node
from outcomes import FAILED, PASSED, Outcome, Suite, main

SOURCE = pathlib.Path(__file__).resolve().parent / "harry"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
# Two of each of Harry's seven shapes.
TABLES = range(14)
STAGE_SECONDS = 1200


class Stage:
    """Visits of every table up to a number, after something has happened to the node."""

    def __init__(self, name, to, before=None, memtable="-", last="check"):
        self.name = name
        self.to = to
        self.before = before
        self.memtable = memtable
        self.last = last


STAGES = (
    Stage("made", 120),
    Stage("killed", 200, before=Node.kill_and_start),
    Stage("moved to the heap", 260, memtable=HEAP),
    Stage("moved back", 320, memtable="default"),
    Stage("killed again", 360, before=Node.kill_and_start),
    Stage("flushed and stopped", 400, before=Node.flush_and_restart, last="corrupt"),
)


class Harry(Suite):
    """A test is one table in one stage: what its model says of all partitions."""

    name = "harry-core 0.0.2"

    def __init__(self):
        self.seed = int(os.environ.get("ENTRESOL_SEED") or random.SystemRandom().getrandbits(40))
        self.classes = None
        self.runs = 0

    def prepare(self, folder):
        print(f"ENTRESOL_SEED={self.seed}", file=sys.stderr, flush=True)
        libraries = folder / "lib"
        call("mvn", "--batch-mode", "--quiet", "--file", SOURCE / "pom.xml", COPY,
             f"-DoutputDirectory={libraries}")
        call("javac", "--release", "17", "-cp", f"{libraries}/*", "-d", folder / "classes",
             SOURCE / "Check.java")
        self.classes = f"{libraries}/*:{folder / 'classes'}"

    def run(self, node, only=()):
        self.runs += 1
        tables = sorted({int(name.split()[0]) for name in only}) or list(TABLES)
        outcomes, begin = {}, 0
        for stage in STAGES:
            if stage.before is not None:
                stage.before(node)
            outcomes.update(self.perform(stage, begin, tables))
            begin = stage.to
        return outcomes

    def perform(self, stage, begin, tables):
        done = subprocess.run(
            ["java", "-Xmx512m", "-cp", self.classes, "Check", str(PORT), str(self.seed),
             f"harry_{self.runs}", str(begin), str(stage.to), stage.memtable, stage.last,
             *map(str, tables)],
            capture_output=True, text=True, errors="replace", timeout=STAGE_SECONDS)
        outcomes = {f"{table}, {stage.name}": found for table, found in read(done.stdout)}
        if len(outcomes) != len(tables):
            raise CannotRun(f"harry, {stage.name}: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return outcomes


def call(*words):
    if shutil.which(words[0]) is None:
        raise CannotRun(f"there is no {words[0]} here: apt-get install maven openjdk-17-jdk")
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=1200)
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")


def read(text):
    """Each table's name and outcome; other lines are what Harry prints of itself."""
    for line in text.splitlines():
        if line.startswith("check\t"):
            _, table, ended, said = line.split("\t", 3)
            yield table, Outcome(PASSED if ended == "passed" else FAILED, said)


if __name__ == "__main__":
    main([Harry()], __doc__)
