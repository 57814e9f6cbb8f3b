#!/usr/bin/python3
"""Installs the Debian package in a Debian of its own, boots that, and looks after its units."""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Failed, check, free_port, until  # noqa: E402

TIMEOUT = 120
# What the package's scripts and units need, and a Debian that boots.
BROUGHT = "systemd,systemd-sysv,dbus,adduser"
CONFIGURATION = "/etc/entresol/entresol.conf"


def run(*words):
    """What a command prints."""
    ended = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(ended.returncode == 0, f"{' '.join(map(str, words))}: {ended.stdout[-2000:]}")
    return ended.stdout


def release():
    """The name of the release of Debian that this machine has."""
    lines = pathlib.Path("/etc/os-release").read_text().splitlines()
    names = [line.split("=")[1] for line in lines if line.startswith("VERSION_CODENAME=")]
    check(names, "/etc/os-release has no VERSION_CODENAME; expected a Debian")
    return names[0]


class Machine:
    """A Debian that has booted, with processes and files of its own, and our network."""

    def __init__(self, directory, package):
        self.root = directory / "root"
        print(f"debootstrap {release()}", flush=True)
        run("debootstrap", "--variant=minbase", f"--include={BROUGHT}", release(), self.root)
        shutil.copy(package, self.root / "entresol.deb")
        run("chroot", self.root, "dpkg", "--install", "/entresol.deb")
        self.log = open(directory / "boot.log", "wb")
        # No service manager of ours has to know of it.
        self.boots = subprocess.Popen(
            ["systemd-nspawn", "-D", self.root, "--boot", "--register=no", "--keep-unit",
             f"--machine=entresol-{os.getpid()}"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.leader = until("the first process of the machine", self.first_process)
        until("a machine that has booted", self.has_booted, seconds=TIMEOUT)

    def first_process(self):
        check(self.boots.poll() is None, "the machine does not boot; see boot.log")
        of = f"/proc/{self.boots.pid}/task/{self.boots.pid}/children"
        return pathlib.Path(of).read_text().split()

    def has_booted(self):
        state = self.tries("systemctl", "is-system-running").stdout.strip()
        return state in ("running", "degraded")

    def tries(self, *words):
        return subprocess.run(["nsenter", "-t", self.leader[0], "-a", *words],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def does(self, *words):
        ended = self.tries(*words)
        check(ended.returncode == 0, f"{' '.join(words)}: {ended.stdout}")
        return ended.stdout

    def shows(self, unit, name):
        return self.does("systemctl", "show", unit, "--value", "--property", name).strip()

    def journal(self, unit):
        return self.does("journalctl", "--no-pager", "--unit", unit)

    def changes(self, path, before, after):
        """Replaces a piece of a file, which has it once."""
        file = self.root / path.lstrip("/")
        text = file.read_text()
        check(text.count(before) == 1, f"{path} has {before!r} {text.count(before)} times")
        file.write_text(text.replace(before, after))

    def ends(self):
        self.tries("systemctl", "poweroff")
        try:
            self.boots.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.boots.kill()
            self.boots.wait()


def ask(port, *words):
    """A server's reply to a command: a line, or a value's."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT) as connection:
        sent = b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in words)
        connection.sendall(b"*%d\r\n" % len(words) + sent)
        replies = connection.makefile("rb")
        line = replies.readline().decode().strip()
        lines = int(line[1:]) if line[:1] == "*" else 0
        if line[:1] == "$" and line != "$-1":
            return replies.readline().decode().strip()
        return [(replies.readline(), replies.readline().decode().strip())[1]
                for _ in range(lines)] if lines else line


def is_well(port):
    with contextlib.suppress(OSError):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=TIMEOUT) as answer:
            return json.load(answer) == {"status": "ok"}
    return False


def restarts_what_hangs(machine, unit):
    """Stops the process, which the watchdog must notice."""
    before = machine.shows(unit, "MainPID")
    machine.does("sh", "-c", f"kill -STOP {before}")
    until(f"{unit} killed by the watchdog and started again",
          lambda: machine.shows(unit, "NRestarts") == "1"
          and machine.shows(unit, "ActiveState") == "active")
    check("Watchdog timeout" in machine.journal(unit), f"{unit} ended, and not by the watchdog")
    check(machine.shows(unit, "MainPID") != before, f"{unit} has the same process")


def stops_well(machine, unit):
    machine.does("systemctl", "stop", unit)
    check(machine.shows(unit, "Result") == "success", f"{unit}: {machine.journal(unit)[-2000:]}")


def look_at_server(machine):
    unit, port, admin = "entresol.service", free_port(), free_port()
    machine.changes(CONFIGURATION, 'capacity = "8GiB"', 'capacity = "256MiB"')
    machine.changes(CONFIGURATION, 'memory = "512MiB"', 'memory = "64MiB"')
    machine.changes(CONFIGURATION, "\nport = 6379", f"\nport = {port}\nmaxclients = 100")
    machine.changes(CONFIGURATION, "admin-port = 6380", f"admin-port = {admin}")
    check(machine.shows(unit, "ActiveState") == "inactive", "the package starts the server unasked")
    machine.does("systemctl", "start", unit)
    check(is_well(admin), "the unit is active, and the server not healthy")
    check(ask(port, "SET", "key", "value") == "+OK", "SET is refused")
    machine.changes(CONFIGURATION, "maxclients = 100", "maxclients = 77")
    machine.does("systemctl", "reload", unit)
    until("the new `maxclients`", lambda: ask(port, "CONFIG", "GET", "maxclients")[1] == "77")
    restarts_what_hangs(machine, unit)
    check(ask(port, "GET", "key") == "value", "the restart lost what was acknowledged")
    stops_well(machine, unit)
    machine.changes("/lib/systemd/system/entresol.socket", ":6379", f":{port}")
    machine.does("systemctl", "daemon-reload")
    machine.does("systemctl", "start", "entresol.socket")
    until("the server that a client's connection starts",
          lambda: ask(port, "GET", "key") == "value")
    machine.does("systemctl", "stop", "entresol.socket")
    stops_well(machine, unit)
    print("entresol.service: starts, reloads, is restarted by the watchdog, stops; by its socket too")


def look_at_volumes(machine):
    unit, admin = "entresol-volume.service", free_port()
    cache, backing = "/var/lib/cache", "/var/lib/backing"
    (machine.root / "etc/entresol/volume.env").write_text(
        f"CACHE={cache}\nOPTIONS=--unix /run/entresol/nbd --admin-port {admin}\n")
    machine.does("truncate", "--size=64M", backing)
    machine.does("entresol", "volume", "create", "--cache", cache, "--capacity", "256MiB",
                 "--backing", backing, "disk")
    machine.does("systemctl", "start", unit)
    check(is_well(admin), "the unit is active, and the server not healthy")
    machine.does("systemctl", "reload", unit)
    restarts_what_hangs(machine, unit)
    check(is_well(admin), "volumes are not healthy after the restart")
    stops_well(machine, unit)
    print("entresol-volume.service: starts, reloads, is restarted by the watchdog, stops")


def look(directory, package):
    machine = Machine(directory, package)
    try:
        look_at_server(machine)
        look_at_volumes(machine)
        machine.does("dpkg", "--purge", "entresol")
    finally:
        machine.ends()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=pathlib.Path, help="the Debian package")
    package = parser.parse_args().package.resolve()
    with tempfile.TemporaryDirectory(prefix="entresol-units-") as directory:
        try:
            look(pathlib.Path(directory), package)
        except Failed as failed:
            sys.exit(f"failed: {failed}")


if __name__ == "__main__":
    main()
