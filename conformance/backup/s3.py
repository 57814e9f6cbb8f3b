#!/usr/bin/python3
"""Backs a running server up into a bucket of S3, restores, damages and thins out what is there."""

import argparse
import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile

import boto3

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Failed, check, free_port, until  # noqa: E402

TIMEOUT = 120
KEYS = 20_000
VALUE_BYTES = 1_000
# Of the second backup: so many of the keys were written since the first.
CHANGED = KEYS // 20
BUCKET = "backups"
PLACE = f"s3://{BUCKET}/orders"
WORDS = {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "secret",
         "AWS_REGION": "eu-central-1"}


def end(process):
    process.terminate()
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Bucket:
    """A server of S3, with a bucket."""

    def __init__(self, directory):
        port = free_port()
        # Beside the interpreter that runs this, as pip installed it.
        moto = pathlib.Path(sys.executable).with_name("moto_server")
        log = open(directory / "moto.log", "wb")
        self.server = subprocess.Popen([moto, "-H", "127.0.0.1", "-p", str(port)],
                                       stdout=log, stderr=log)
        self.url = f"http://127.0.0.1:{port}"
        self.client = boto3.client(
            "s3", endpoint_url=self.url, region_name=WORDS["AWS_REGION"],
            aws_access_key_id=WORDS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=WORDS["AWS_SECRET_ACCESS_KEY"])
        until("a server of S3", lambda: self.reaches(port))
        self.client.create_bucket(
            Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": WORDS["AWS_REGION"]})

    def reaches(self, port):
        check(self.server.poll() is None, "the server of S3 ended; see moto.log")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    def objects(self):
        """Names and sizes."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", [])}

    def flip(self, name):
        """Changes a bit in the middle of an object; gives its bytes as they were."""
        whole = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        damaged = bytearray(whole)
        damaged[len(damaged) // 2] ^= 1
        self.client.put_object(Bucket=BUCKET, Key=name, Body=bytes(damaged))
        return whole


class Served:
    """`entresol serve` on a Unix socket."""

    def __init__(self, program, directory, data):
        self.socket = directory / f"{data.name}.socket"
        self.log = open(directory / f"{data.name}.log", "wb")
        self.process = subprocess.Popen(
            [program, "serve", "--dir", data, "--capacity", "192MiB", "--memory", "64MiB",
             "--port", "", "--unix", self.socket, "--buffer-directory", directory,
             "--durability", "process"],
            stdout=self.log, stderr=self.log)
        until("a server", self.serves)

    def serves(self):
        check(self.process.poll() is None, "the server ended; see its log")
        with contextlib.suppress(OSError):
            return self.ask([["PING"]]) == [b"+PONG"]
        return False

    def ask(self, commands):
        """The replies to commands, each a line or a value."""
        sent = b"".join(
            b"*%d\r\n" % len(command)
            + b"".join(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()) for word in command)
            for command in commands)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect(str(self.socket))
            connection.sendall(sent)
            replies = connection.makefile("rb")
            return [self.reply(replies) for _ in commands]

    @staticmethod
    def reply(replies):
        line = replies.readline().rstrip(b"\r\n")
        if line.startswith(b"$") and line != b"$-1":
            return replies.read(int(line[1:]) + 2)[:-2]
        return line

    def set(self, keys, word):
        for first in range(0, len(keys), 500):
            some = keys[first:first + 500]
            replies = self.ask([["SET", f"k{key}", value(key, word)] for key in some])
            check(set(replies) == {b"+OK"}, f"SET was answered with {replies[0]}")

    def demand(self, words):
        """Every key has the value of the word that `words` gives for it."""
        for first in range(0, KEYS, 500):
            some = range(first, first + 500)
            found = self.ask([["GET", f"k{key}"] for key in some])
            for key, has in zip(some, found):
                wanted = value(key, words(key)).encode()
                check(has == wanted, f"k{key} is {has[:30]}, expected {wanted[:30]}")


def value(key, word):
    # Half of it cannot be compressed.
    noise = (key * 2_654_435_761 % (1 << 32)).to_bytes(4, "big").hex() * (VALUE_BYTES // 16)
    return f"{word}:{key}:{noise}".ljust(VALUE_BYTES, "x")


class Commands:
    """`entresol`, with what it has to know of the bucket."""

    def __init__(self, program, bucket):
        self.program = program
        self.environment = os.environ | WORDS | {"AWS_ENDPOINT_URL": bucket.url}

    def start(self, *arguments):
        return subprocess.Popen([self.program, *arguments], env=self.environment, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, status=0):
        """What it prints, as JSON; the error where it is to end with another status."""
        process = self.start(*arguments)
        output, error = process.communicate(timeout=TIMEOUT)
        check(process.returncode == status,
              f"{' '.join(map(str, arguments))} ended with {process.returncode}: {error}")
        return json.loads(output) if status == 0 else error


def back_up(commands, served, *more):
    return commands.run("backup", "--from", f"unix:{served.socket}", "--to", PLACE, "--json", *more)


def restored(commands, directory, name, words, *more):
    """Restores a backup into a directory of its own, and looks at all keys there."""
    data = directory / name
    commands.run("restore", "--from", PLACE, "--dir", data, "--json", *more)
    with contextlib.ExitStack() as ends:
        served = Served(commands.program, directory, data)
        ends.callback(end, served.process)
        served.demand(words)


def kill_one(commands, served):
    """Kills a backup once it has begun to write objects."""
    process = commands.start("backup", "--from", f"unix:{served.socket}", "--to", PLACE,
                             "--rate", "2MB")
    before = len(commands.bucket.objects())
    until("an object of the backup that is killed",
          lambda: len(commands.bucket.objects()) > before + 1)
    check(process.poll() is None, "the backup that is to be killed ended before")
    process.send_signal(signal.SIGKILL)
    process.communicate()


def look(program, directory):
    with contextlib.ExitStack() as ends:
        bucket = Bucket(directory)
        ends.callback(end, bucket.server)
        commands = Commands(program, bucket)
        commands.bucket = bucket
        served = Served(program, directory, directory / "data")
        ends.callback(end, served.process)

        served.set(range(KEYS), "first")
        kill_one(commands, served)
        check(not commands.run("backup", "--list", PLACE, "--json")["backups"],
              "a backup that was killed is listed")
        first = back_up(commands, served)
        check(first["read_bytes"] > KEYS * VALUE_BYTES, f"the first backup is short: {first}")

        served.set(range(CHANGED), "second")
        second = back_up(commands, served)
        check(second["read_bytes"] < first["read_bytes"] / 3,
              f"the second backup read {second['read_bytes']} bytes of {first['read_bytes']}")
        listed = commands.run("backup", "--list", PLACE, "--json")["backups"]
        check([each["backup"] for each in listed] == [first["backup"], second["backup"]],
              f"listed are {listed}")
        commands.run("backup", "--verify", PLACE, "--json")
        print(f"first backup {first['read_bytes']:,} bytes, second {second['read_bytes']:,}")

        restored(commands, directory, "newest",
                 lambda key: "second" if key < CHANGED else "first")
        restored(commands, directory, "oldest", lambda _: "first", "--backup", first["backup"])

        # The largest object is a segment of the first backup, which the second needs, too.
        name = max(bucket.objects().items(), key=lambda item: item[1])[0]
        whole = bucket.flip(name)
        error = commands.run("backup", "--verify", PLACE, "--json", status=1)
        check(name.rsplit("/", 1)[1] in error, f"{name} is damaged and not named: {error}")
        data = directory / "damaged"
        error = commands.run("restore", "--from", PLACE, "--dir", data, "--json", status=1)
        check(not (data / "entresol.data").exists(), f"a damaged backup was put in place: {error}")
        bucket.client.put_object(Bucket=BUCKET, Key=name, Body=whole)

        error = commands.run("backup", "--to", PLACE, "--keep", "1", status=2)
        check("15 minutes" in error, f"objects went while one that was killed may write: {error}")
        # What that one left is old by then.
        for mark in [name for name in bucket.objects() if "/writing/" in name]:
            bucket.client.delete_object(Bucket=BUCKET, Key=mark)
        before = len(bucket.objects())
        commands.run("backup", "--to", PLACE, "--keep", "1", "--json")
        after = len(bucket.objects())
        check(after < before, f"of {before} objects {after} are left, and one backup")
        restored(commands, directory, "kept", lambda key: "second" if key < CHANGED else "first")

        error = commands.run("backup", "--list", "s3://nobody/orders", "--json", status=2)
        check("nobody" in error, f"the bucket that is not there is not named: {error}")
        print("backed up, restored, damaged and thinned out in a bucket: all as expected")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path, help="entresol, as it was built")
    program = parser.parse_args().program.resolve()
    with tempfile.TemporaryDirectory(prefix="entresol-s3-") as directory:
        try:
            look(program, pathlib.Path(directory))
        except Failed as failed:
            sys.exit(f"failed: {failed}")


if __name__ == "__main__":
    main()
