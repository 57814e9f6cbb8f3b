"""A Cassandra node for a suite: stock, or one whose `default` memtable is Entresol's."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "java/cassandra/bin/entresol-cassandra"
TEMPLATES = ROOT / "java/cassandra/src/main/resources/io/entresol/cassandra/node"

STOCK = "stock"
OURS = "ours"
KINDS = (STOCK, OURS)
# A configuration of both kinds: Cassandra's own memtable, to which a suite may alter a table.
HEAP = "heap"

# The suite of gocql expects the node at this address and port.
ADDRESS = "127.0.0.1"
PORT = 9042
VALUES = {
    "address": ADDRESS,
    "seed": f"{ADDRESS}:7000",
    "storage_port": "7000",
    "cql_port": str(PORT),
    "jmx_port": "7277",
    "capacity": "1024MiB",
    "journal": "64MiB",
    "store_memory": "512MiB",
    "heap": "1024m",
    "collector": "UseG1GC",
    "token": "",
}
# As users have it, and as some tests expect it: the node owns many ranges.
SETTINGS = {"num_tokens": "16", "initial_token": None}
OPENED = "Opened the store on"
START_SECONDS = 600


class CannotRun(Exception):
    """The comparison itself is impossible."""


class Node:
    """One fresh node in a folder of its own; both kinds differ in the `default` memtable alone."""

    def __init__(self, folder, kind, settings, java_options):
        self.folder = folder
        self.kind = kind
        self.settings = {**SETTINGS, **settings}
        self.java_options = java_options

    def __enter__(self):
        self.make()
        try:
            self.launcher("start")
            self.check_kind()
        except CannotRun:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.folder.exists():
            subprocess.run([LAUNCHER, "stop", "--dir", self.folder], capture_output=True,
                           timeout=START_SECONDS)
            shutil.rmtree(self.folder, ignore_errors=True)

    def make(self):
        """What `start` would write, with the settings of the suite."""
        configuration = self.folder / "conf"
        configuration.mkdir(parents=True)
        (self.folder / "logs").mkdir()
        for name in ["logback.xml", "jvm.options", "cassandra.yaml"]:
            text = self.filled(name)
            if name == "jvm.options":
                text += "".join(f"{option}\n" for option in self.java_options)
            if name == "cassandra.yaml":
                text = self.configured(text)
            (configuration / name).write_text(text)

    def filled(self, name):
        text = (TEMPLATES / name).read_text()
        values = {**VALUES, "store": str(self.folder / "entresol.store")}
        for key, value in values.items():
            text = text.replace(f"${{{key}}}", value)
        left = re.findall(r"\$\{\w+\}", text)
        if left:
            raise CannotRun(f"{TEMPLATES / name} has {left[0]}, for which there is no value here")
        return text

    def configured(self, text):
        for key, value in self.settings.items():
            text = re.sub(rf"(?m)^{key}:.*\n", "", text)
            if value is not None:
                text = f"{key}: {value}\n{text}"
        if self.kind == OURS:
            text = with_memtable(text, "    default:\n      inherits: entresol\n")
        return with_memtable(text, f"    {HEAP}:\n      class_name: SkipListMemtable\n")

    def check_kind(self):
        """Nothing is compared unless the one node has a store, and the other has none."""
        has_store = OPENED in self.log()
        if has_store != (self.kind == OURS):
            raise CannotRun(f"the node that should be {self.kind} "
                            f"{'opened a' if has_store else 'opened no'} store")

    def kill_and_start(self):
        """As if it had crashed: nothing gets a chance to tidy up."""
        process = int((self.folder / "node.pid").read_text())
        os.kill(process, signal.SIGKILL)
        end = time.monotonic() + START_SECONDS
        while is_running(process):
            if time.monotonic() > end:
                raise CannotRun(f"process {process} of the {self.kind} node survived its kill")
            time.sleep(0.05)
        self.launcher("start")

    def flush_and_restart(self):
        for command in [("nodetool", "flush"), ("stop",), ("start",)]:
            self.launcher(*command)

    def log(self):
        return (self.folder / "logs/system.log").read_text(errors="replace")

    def launcher(self, command, *words):
        done = subprocess.run([LAUNCHER, command, "--dir", self.folder, *words],
                              capture_output=True, text=True, timeout=START_SECONDS)
        if done.returncode != 0:
            raise CannotRun(f"{' '.join([command, *words])} of the {self.kind} node: "
                            f"{done.stderr or done.stdout}")


def with_memtable(text, configuration):
    text, changes = re.subn(r"(?m)^  configurations:\n",
                            f"  configurations:\n{configuration}", text)
    if changes != 1:
        raise CannotRun(f"{TEMPLATES / 'cassandra.yaml'} configures no memtables")
    return text


def is_running(process):
    """Whether a process holds its ports: its threads end one by one, its first before others."""
    try:
        facts = pathlib.Path(f"/proc/{process}/stat").read_text()
        threads = len(os.listdir(f"/proc/{process}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return False
    return threads > 1 or not facts[facts.rindex(")") + 2:].startswith("Z")
