#!/usr/bin/env python3
"""The integration suites of gocql and of its successor, on stock Cassandra and on ours."""

import json
import pathlib
import re
import shutil
import subprocess
import time

from node import ADDRESS, CannotRun
from outcomes import FAILED, PASSED, SKIPPED, Outcome, Suite, main

CASSANDRA = "5.0.9"
# What gocql's own integration runs ask of a node.
SETTINGS = {"user_defined_functions_enabled": "true", "materialized_views_enabled": "true"}
JAVA_OPTIONS = (
    "-Dcassandra.test.fail_writes_ks=test",
    "-Dcassandra.custom_query_handler_class="
    "org.apache.cassandra.cql3.CustomPayloadMirroringQueryHandler",
)
TAGS = "cassandra integration gocql_debug"
# It starts a node of its own in a container.
LEFT_OUT = ("TestDocker",)
SUITE_SECONDS = 1200
SUPERUSER = "Created default superuser role"

# What the driver logs, and lines of the test's frame.
NOISE = r"gocql: |^\s*(===|---) "
ENDS = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}


def go(*words, folder=None):
    if shutil.which("go") is None:
        raise CannotRun("there is no Go here: apt-get install golang-go")
    done = subprocess.run(["go", *words], cwd=folder, capture_output=True, text=True,
                          timeout=SUITE_SECONDS)
    if done.returncode != 0:
        raise CannotRun(f"go {' '.join(map(str, words))}: {done.stderr or done.stdout}")
    return done.stdout


class Gocql(Suite):
    """All tests that one node is enough for, over TLS with certificates on both sides."""

    java_options = JAVA_OPTIONS
    tests = ()
    flags = ()

    def __init__(self, module, protocol, compressor, limits=None):
        path, version = module.split("@")
        self.name = f"{pathlib.PurePath(path.removesuffix('/v2')).name} {version}"
        self.module = module
        self.limits = limits or {}
        self.protocol = protocol
        self.compressor = compressor
        self.source = None
        self.program = None
        self.settings = {}

    def prepare(self, folder):
        """Gets the suite by the Go toolchain, and compiles it once."""
        cached = json.loads(go("mod", "download", "-json", self.module, folder=folder))["Dir"]
        self.source = folder / "suite"
        shutil.copytree(cached, self.source)
        for path in [self.source, *self.source.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        adapt(self.source)
        self.program = folder / "suite.test"
        go("test", "-vet=off", "-c", "-tags", TAGS, "-o", self.program, ".", folder=self.source)
        self.settings = {**SETTINGS, "client_encryption_options": encryption(self.source, folder)}

    def run(self, node, only=()):
        """The tests that a crash of the program leaves are run by another one."""
        wanted = sorted({name.split("/")[0] for name in only}) or list(self.tests) or self.listed()
        outcomes = {}
        while wanted:
            found = self.run_once(wanted)
            outcomes.update(found)
            left = [name for name in wanted if name not in outcomes]
            if len(left) == len(wanted):
                break
            wanted = left
        return outcomes

    def listed(self):
        found = subprocess.run([self.program, "-test.list", "."], cwd=self.source, text=True,
                               capture_output=True, timeout=SUITE_SECONDS, check=True)
        names = [name for name in found.stdout.split() if re.match(r"(Test|Example)", name)]
        return [name for name in names if name not in LEFT_OUT]

    def run_once(self, wanted):
        words = ["go", "tool", "test2json", self.program, "-test.v=true",
                 f"-test.timeout={SUITE_SECONDS}s", f"-test.run=^({'|'.join(wanted)})$",
                 "-runssl", f"-proto={self.protocol}", f"-compressor={self.compressor}",
                 f"-gocql.cversion={CASSANDRA}", f"-cluster={ADDRESS}", "-rf=1", "-clusterSize=1",
                 "-autowait=2000ms", "-gocql.timeout=60s", *self.flags]
        done = subprocess.run(words, cwd=self.source, capture_output=True, text=True,
                              errors="replace", timeout=2 * SUITE_SECONDS)
        return read(done.stdout)


class Authentication(Gocql):
    """The one test of gocql that needs a node with passwords."""

    tests = ("TestAuthentication",)
    flags = ("-runauth",)

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.limits = {}
        self.name += " with passwords"

    def prepare(self, folder):
        super().prepare(folder)
        self.settings["authenticator"] = "PasswordAuthenticator"
        self.settings["authorizer"] = "CassandraAuthorizer"

    def run(self, node, only=()):
        end = time.monotonic() + 120
        while SUPERUSER not in node.log():
            if time.monotonic() > end:
                raise CannotRun("the node made no superuser within two minutes")
            time.sleep(0.5)
        return super().run(node, only)


def adapt(source):
    """Cassandra 5.0 dropped `dateOf`, which `toTimestamp` had replaced; the test is of `IF`."""
    for path in source.glob("*_test.go"):
        text = path.read_text()
        if "DATEOF(" in text:
            path.write_text(text.replace("DATEOF(", "TOTIMESTAMP("))


def encryption(source, folder):
    """The suite's own certificates, as Cassandra reads them without a tool that converts them."""
    pki = source / "testdata/pki"
    key = (pki / "cassandra.key").read_text()
    (folder / "node.pem").write_text(key + certificate(pki, "cassandra"))
    (folder / "authority.pem").write_text(certificate(pki, "ca"))
    return json.dumps({
        "enabled": True, "optional": False, "require_client_auth": True,
        "ssl_context_factory": {
            "class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory",
            "parameters": {},
        },
        "keystore": str(folder / "node.pem"), "truststore": str(folder / "authority.pem"),
    })


def certificate(pki, name):
    text = (pki / f"{name}.crt").read_text()
    return text[text.index("-----BEGIN CERTIFICATE"):]


def read(lines):
    """The outcomes in the lines of `test2json`."""
    outcomes, said = {}, {}
    for line in lines.splitlines():
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        name = event.get("Test")
        if name is None:
            continue
        if event["Action"] == "output":
            said.setdefault(name, []).append(event["Output"])
        elif event["Action"] in ENDS:
            words = [text for text in said.get(name, []) if not re.search(NOISE, text)]
            outcomes[name] = Outcome(ENDS[event["Action"]], "".join(words))
    return outcomes


GOCQL = ("github.com/gocql/gocql@v1.7.0", 4, "snappy")
SUCCESSOR = ("github.com/apache/cassandra-gocql-driver/v2@v2.1.2", 5, "lz4")

if __name__ == "__main__":
    main([Gocql(*GOCQL), Authentication(*GOCQL), Gocql(*SUCCESSOR), Authentication(*SUCCESSOR)],
         __doc__)
