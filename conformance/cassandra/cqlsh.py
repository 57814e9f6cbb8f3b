#!/usr/bin/env python3
"""Cassandra's suite of cqlsh, as ScyllaDB's fork keeps it, on stock Cassandra and on ours."""

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree

from node import ADDRESS, PORT, CannotRun
from outcomes import FAILED, PASSED, SKIPPED, Outcome, Suite, main

# Of its packages the only one that carries the suite; Cassandra's own cqlsh comes without.
PROJECT = "scylla-cqlsh"
VERSION = "6.0.40"
TOOLS = ["scylla-driver==3.29.12", "lz4==4.4.5", "pytest==9.2.0", "setuptools_scm", "packaging"]
SUITE_SECONDS = 3600
TESTS = "pylib/cqlshlib/test"
# Reasons stand in README.md.
LEFT_OUT = [
    "--ignore", f"{TESTS}/test_cqlsh_completion.py",
    "--deselect", f"{TESTS}/test_copy_round_trip.py::TestCopyFromWithFailures"
                  "::test_copy_from_with_child_process_crashing",
]
TORN = "        buf = os.read(self.childpty, blksize)\n"
WHOLE = """\
        while buf.decode("utf-8", "ignore").encode("utf-8") != buf:
            buf += os.read(self.childpty, 1)
"""


class Cqlsh(Suite):
    """The suite with the program `cqlsh` beside it, in an environment of its own."""

    name = f"{PROJECT} {VERSION}"
    settings = {"user_defined_functions_enabled": "true", "cdc_enabled": "true"}

    def __init__(self):
        self.source = None
        self.python = None
        self.report = None

    def prepare(self, folder):
        """Gets the suite and what it needs by pip."""
        environment = folder / "environment"
        call(sys.executable, "-m", "venv", environment)
        self.python = environment / "bin/python"
        call(self.python, "-m", "pip", "install", "--quiet", *TOOLS)
        call(self.python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", PROJECT,
             "--dest", folder, f"{PROJECT}=={VERSION}")
        (archive,) = folder.glob("*.tar.gz")
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        self.source = folder / archive.name.removesuffix(".tar.gz")
        adapt(self.source)
        self.report = folder / "report.xml"

    def run(self, node, only=()):
        del node
        self.report.unlink(missing_ok=True)
        wanted = [f"{TESTS}/{name}" for name in only] or [TESTS]
        environment = {
            **os.environ,
            "PATH": f"{self.python.parent}:{os.environ['PATH']}",
            "PYTHONPATH": "pylib",
            "SETUPTOOLS_SCM_PRETEND_VERSION": VERSION,
            "CQL_TEST_HOST": ADDRESS,
            "CQL_TEST_PORT": str(PORT),
        }
        done = subprocess.run(
            [self.python, "-m", "pytest", "--quiet", f"--junitxml={self.report}", *LEFT_OUT,
             *wanted], cwd=self.source, env=environment, capture_output=True, text=True,
            errors="replace", timeout=SUITE_SECONDS)
        if not self.report.exists():
            raise CannotRun(f"pytest: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return read(self.report)


def call(*words):
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=1200)
    if done.returncode != 0:
        raise CannotRun(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")


def adapt(source):
    """The suite decodes what a terminal gives it block by block, which tears characters apart."""
    path = source / TESTS / "run_cqlsh.py"
    text = path.read_text()
    if text.count(TORN) != 1:
        raise CannotRun(f"{path} does not read a terminal by the lines that it is known for")
    path.write_text(text.replace(TORN, TORN + WHOLE))


def read(report):
    """The outcomes in pytest's report, by the names that pytest takes."""
    outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = identifier(case.get("classname"), case.get("name"))
        wrong = [found for found in case if found.tag in ("failure", "error")]
        if wrong:
            outcomes[name] = Outcome(FAILED, wrong[0].get("message") or wrong[0].text or "")
        elif case.find("skipped") is not None:
            outcomes.setdefault(name, Outcome(SKIPPED, ""))
        else:
            outcomes.setdefault(name, Outcome(PASSED, ""))
    return outcomes


def identifier(place, name):
    """`pylib.cqlshlib.test.test_unicode.TestCqlshUnicode` is a class in a file of the suite."""
    words = place.removeprefix(TESTS.replace("/", ".") + ".").split(".")
    return "::".join([f"{words[0]}.py", *words[1:], name])


if __name__ == "__main__":
    main([Cqlsh()], __doc__)
