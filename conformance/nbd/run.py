#!/usr/bin/python3
"""Clients of other people's judge the NBD server of `entresol volume serve`."""

import argparse
import contextlib
import errno
import json
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nbd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Failed, check  # noqa: E402

MIB = 1 << 20
SIZE = 24 * MIB
TIMEOUT = 120


def equal(found, expected, what):
    check(found == expected, f"{what}: expected {expected!r}, found {found!r}")


def run(*words, retries=0, **more):
    """Runs a program; its standard output. A status other than 0 is a failure, after `retries`."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=TIMEOUT, **more)
    if done.returncode != 0 and retries:
        time.sleep(0.1)
        return run(*words, retries=retries - 1, **more)
    check(done.returncode == 0,
          f"{' '.join(map(str, words))}: status {done.returncode}: {done.stderr}{done.stdout[:999]}")
    return done.stdout


class Bench:
    """A directory with a cache and volumes, served when a case asks for it."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.cache = directory / "cache"
        self.socket = directory / "nbd"
        self.image = directory / "image"

    def create(self, name, *options, size=SIZE):
        backing = self.directory / f"{name}.img"
        with open(backing, "wb") as file:
            file.truncate(size)
        run(self.program, "volume", "create", name, "--cache", self.cache, "--capacity", "64MiB",
            "--backing", backing, *options)
        return backing

    @contextlib.contextmanager
    def serve(self, *options):
        """A running server; its first line, as words."""
        server = subprocess.Popen(
            [self.program, "volume", "serve", "--cache", str(self.cache), *map(str, options)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        err = ""
        try:
            line = server.stdout.readline()
            if not line.startswith("listening"):
                server.kill()
                raise Failed(f"the server did not start: {server.communicate()}")
            try:
                yield dict(word.split("=", 1) for word in line.split()[1:])
            finally:
                server.send_signal(signal.SIGTERM)
                out, err = server.communicate(timeout=TIMEOUT)
            check(server.returncode == 0, f"the server ended with {server.returncode}: {out}{err}")
        except (Failed, nbd.Error) as error:
            raise Failed(f"{error}; the server said: {err}") from error
        finally:
            if server.poll() is None:
                server.kill()
                server.communicate()

    def unix(self, *options):
        return self.serve("--unix", self.socket, *options)

    def uri(self, name=""):
        return f"nbd+unix:///{name}?socket={self.socket}"


def info(bench):
    """nbdinfo sees every ability, size and context, and lists several exports."""
    bench.create("first")
    bench.create("second", size=3 * MIB + 7)
    with bench.unix():
        told = json.loads(run("nbdinfo", "--json", bench.uri("first")))
        export = told["exports"][0]
        equal(told["structured"], True, "structured replies")
        equal(export["export-size"], SIZE, "size")
        for ability in ["can_cache", "can_df", "can_fast_zero", "can_flush", "can_fua",
                        "can_multi_conn", "can_trim", "can_zero"]:
            equal(export[ability], True, ability)
        equal(export["is_read_only"], False, "read-only")
        equal(export["contexts"], ["base:allocation", "x-entresol:residency"], "contexts")
        equal((export["block_size_minimum"], export["block_size_preferred"],
               export["block_size_maximum"]), (1, 4096, 32 * MIB), "block sizes")
        for ability in ["connect", "write", "zero", "trim", "flush", "fua", "cache", "df",
                        "fast-zero", "multi-conn", "structured-reply"]:
            run("nbdinfo", "--can", ability, bench.uri("first"))
        listed = json.loads(run("nbdinfo", "--json", "--list", bench.uri()))
        names = sorted(export["export-name"] for export in listed["exports"])
        equal(names, ["first", "second"], "list")
        equal(run("nbdinfo", "--size", bench.uri("second")).strip(), str(3 * MIB + 7), "odd size")
        refused = subprocess.run(["nbdinfo", bench.uri()], capture_output=True, text=True)
        check(refused.returncode != 0, f"a default among two: {refused.stdout}")


def copies(bench):
    """nbdcopy there and back, qemu-img compare, and holes in the map."""
    bench.create("volume", "--mode", "wb")
    source = random.Random(1)
    with open(bench.image, "wb") as file:
        file.truncate(SIZE)
        for _ in range(40):
            file.seek(source.randrange(SIZE // 4096 - 16) * 4096)
            file.write(source.randbytes(16 * 4096))
    back = bench.directory / "back"
    with bench.unix():
        run("nbdcopy", bench.image, bench.uri("volume"))
        run("qemu-img", "compare", "-f", "raw", "-F", "raw", bench.image, bench.uri("volume"))
        run("nbdcopy", "--connections=4", bench.uri("volume"), back)
        equal(back.read_bytes() == bench.image.read_bytes(), True, "round trip")
        extents = json.loads(run("nbdinfo", "--map", "--json", bench.uri("volume")))
        equal(sum(extent["length"] for extent in extents), SIZE, "the map's length")
        check(any(extent["type"] == 3 for extent in extents), f"no hole in the map: {extents}")
        content = bench.image.read_bytes()
        for extent in extents:
            if extent["type"] & 2:
                piece = content[extent["offset"]:extent["offset"] + extent["length"]]
                check(not any(piece), f"zeros are claimed where there are none: {extent}")
        run("qemu-img", "map", "--output=json", "-f", "raw", bench.uri("volume"))
        cached = run("nbdinfo", "--map=x-entresol:residency", "--json", bench.uri("volume"))
        check(any(extent["type"] & 1 for extent in json.loads(cached)), "nothing is cached")


def patterns(bench):
    """qemu-io writes, zeroes and discards at odd places, and reads back what it should."""
    bench.create("volume")
    commands = [
        "write -P 7 1000 5000", "read -P 7 1000 5000", "write -P 9 4095 2", "read -P 9 4095 2",
        "write -z 2000 3000", "read -P 0 2000 3000", "read -P 7 1000 1000", "read -P 7 5000 1000",
        "write -z -u 1M 1M", "read -P 0 1M 1M", "discard 0 4M", "write -f -P 3 0 512",
        "aio_write -P 5 8M 2M", "aio_write -P 6 10M 2M", "aio_flush", "read -P 5 8M 2M",
        "read -P 6 10M 2M", "flush",
    ]
    with bench.unix():
        words = [word for command in commands for word in ("-c", command)]
        out = run("qemu-io", "-f", "raw", *words, bench.uri("volume"))
        check("failed" not in out.lower(), out)


def errors(bench):
    """Illegal requests have the errors of the protocol, and end no connection."""
    bench.create("volume")
    with bench.unix():
        for structured in [True, False]:
            judge_errors(bench, structured)


def judge_errors(bench, structured):
    client = nbd.NBD()
    client.set_request_structured_replies(structured)
    client.set_export_name("volume")
    if structured:
        client.add_meta_context("base:allocation")
    client.connect_unix(str(bench.socket))
    client.set_strict_mode(0)
    data = bytes(MIB)

    def fails(code, what, *arguments, **more):
        try:
            getattr(client, what)(*arguments, **more)
        except nbd.Error as error:
            found = error.errnum
            equal(errno.errorcode.get(found, found), errno.errorcode[code], f"{what}{arguments[-2:]}")
        else:
            raise Failed(f"{what}: expected {errno.errorcode[code]}, found success")
        equal(client.pread(1, 0), b"\0", f"a read after {what}")

    fails(errno.EINVAL, "pread", 1, SIZE)
    fails(errno.EINVAL, "pread", 2, SIZE - 1)
    fails(errno.ENOSPC, "pwrite", b"ab", SIZE - 1)
    fails(errno.ENOSPC, "zero", 2, SIZE - 1)
    fails(errno.EINVAL, "trim", 2, SIZE - 1)
    fails(errno.EINVAL, "cache", 2, SIZE - 1)
    fails(errno.EINVAL, "flush", 1 << 7)
    fails(errno.EINVAL, "pwrite", b"a", 0, 1 << 9)
    fails(errno.EINVAL, "pwrite", b"a", 0, nbd.CMD_FLAG_NO_HOLE)
    fails(errno.EINVAL, "trim", 1, 0, nbd.CMD_FLAG_REQ_ONE)
    if structured:
        fails(errno.EINVAL, "block_status", 2, SIZE - 1, lambda *_: 0)
    else:
        fails(errno.EINVAL, "pread", 1, 0, nbd.CMD_FLAG_DF)
    # Payloads larger than the server announces are taken in, and judged by their range.
    fails(errno.ENOSPC, "pwrite", bytes(33 * MIB), 0)
    # FUA goes with every command; nothing is no harm.
    client.pwrite(data, 0, nbd.CMD_FLAG_FUA)
    client.zero(MIB, 0, nbd.CMD_FLAG_FUA | nbd.CMD_FLAG_NO_HOLE)
    client.trim(MIB, 0, nbd.CMD_FLAG_FUA)
    client.cache(MIB, 0, nbd.CMD_FLAG_FUA)
    client.flush(nbd.CMD_FLAG_FUA)
    client.pwrite(b"", 0)
    client.zero(0, 0)
    client.trim(0, 0)
    client.cache(0, 0)
    client.pwrite(bytes(range(256)), 12345)
    equal(client.pread(256, 12345), bytes(range(256)), "bytes at an odd place")
    client.zero(256, 12345)
    client.shutdown()


def read_only(bench):
    """A volume whose backing, another NBD server, may only be read refuses writes with EPERM."""
    image = bench.directory / "image"
    image.write_bytes(b"fixed" + bytes(MIB - 5))
    socket = bench.directory / "backing"
    server = subprocess.Popen(["qemu-nbd", "--read-only", "--persistent", "--shared=8",
                               "--format=raw", f"--socket={socket}", str(image)])
    try:
        uri = f"nbd+unix:///?socket={socket}"
        run("nbdinfo", "--size", uri, retries=50)
        run(bench.program, "volume", "create", "volume", "--cache", bench.cache, "--capacity",
            "64MiB", "--backing", uri)
        with bench.unix():
            run("nbdinfo", "--is", "read-only", bench.uri("volume"))
            client = nbd.NBD()
            client.set_strict_mode(0)
            client.connect_uri(bench.uri("volume"))
            equal(client.pread(5, 0), b"fixed", "bytes through the cache")
            for what, arguments in [("pwrite", (b"a", 0)), ("zero", (1, 0)), ("trim", (1, 0))]:
                try:
                    getattr(client, what)(*arguments)
                except nbd.Error as error:
                    equal(error.errnum, errno.EPERM, what)
                else:
                    raise Failed(f"{what}: expected EPERM, found success")
            client.shutdown()
    finally:
        server.kill()
        server.wait()


def activation(bench):
    """Socket activation, and one client on the standard input."""
    bench.create("volume")
    told = json.loads(run("nbdinfo", "--json", "--", "[", bench.program, "volume", "serve",
                          "--cache", bench.cache, "]"))
    equal(told["exports"][0]["export-size"], SIZE, "size by socket activation")
    client = nbd.NBD()
    client.connect_command([str(bench.program), "volume", "serve", "--cache", str(bench.cache),
                            "--stdin"])
    client.pwrite(b"by stdin", 100)
    equal(client.pread(8, 100), b"by stdin", "bytes over the standard input")
    client.shutdown()
    del client


def encryption(bench):
    """TLS with certificates on both sides, and clients without them refused."""
    bench.create("volume")
    pki = bench.directory / "pki"
    pki.mkdir()
    certify(pki)
    files = ("--tls-cert", pki / "server-cert.pem", "--tls-key", pki / "server-key.pem",
             "--tls-client-ca", pki / "ca-cert.pem")
    with bench.serve("--port", 0, *files) as ports:
        place = f"localhost:{ports['port']}/volume"
        told = run("nbdinfo", f"nbds://{place}?tls-certificates={pki}")
        check("with TLS" in told, told)
        run("nbdcopy", f"nbds://{place}?tls-certificates={pki}", bench.image)
        stranger = bench.directory / "stranger"
        stranger.mkdir()
        shutil.copy(pki / "ca-cert.pem", stranger)
        for uri in [f"nbd://{place}", f"nbds://{place}?tls-certificates={stranger}"]:
            refused = subprocess.run(["nbdinfo", uri], capture_output=True, text=True)
            check(refused.returncode != 0, f"{uri} was served: {refused.stdout}")


def certify(pki):
    """An authority, and certificates of a server and a client."""
    def openssl(*words):
        run("openssl", *words, cwd=pki)

    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
            "-keyout", "ca-key.pem", "-out", "ca-cert.pem")
    for name in ["server", "client"]:
        (pki / f"{name}.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n"
                                         "extendedKeyUsage=serverAuth,clientAuth\n")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", f"{name}-key.pem", "-out", f"{name}.csr")
        openssl("x509", "-req", "-days", "2", "-in", f"{name}.csr", "-CA", "ca-cert.pem", "-CAkey",
                "ca-key.pem", "-CAcreateserial", "-extfile", f"{name}.ext", "-out",
                f"{name}-cert.pem")


def verification(bench):
    """fio writes at random over several connections and verifies every block."""
    bench.create("volume", "--mode", "wb")
    with bench.unix():
        told = run("fio", "--name=verify", "--ioengine=nbd", f"--uri={bench.uri('volume')}",
                   "--rw=randrw", "--bsrange=512-32k", "--bs_unaligned", "--iodepth=16",
                   "--verify=crc32c", "--verify_fatal=1", f"--size={SIZE // 3}", "--numjobs=3",
                   f"--offset_increment={SIZE // 3}", "--randseed=7", "--fsync=64",
                   "--output-format=json", cwd=bench.directory)
        jobs = json.loads(told[told.index("{"):])["jobs"]
        equal([job["error"] for job in jobs], [0, 0, 0], "errors of fio's jobs")
        check(all(job["read"]["total_ios"] > 0 for job in jobs), "fio read nothing")


def reopening(bench):
    """What was written is there after a stop, and on the backing after a flush of the cache."""
    backing = bench.create("volume", "--mode", "wb")
    source = random.Random(2).randbytes(MIB)
    with bench.unix():
        client = nbd.NBD()
        client.connect_uri(bench.uri("volume"))
        client.pwrite(source, 3 * MIB)
        client.shutdown()
    with bench.unix() as ports:
        client = nbd.NBD()
        client.connect_uri(bench.uri("volume"))
        equal(client.pread(MIB, 3 * MIB) == source, True, "the bytes after a restart")
        client.shutdown()
        answer = administer(ports["control"], {"command": "flush", "volume": "volume"})
        equal(answer["ok"], True, "flush")
        equal(backing.read_bytes()[3 * MIB:4 * MIB] == source, True, "the backing's bytes")
        equal(administer(ports["control"], {"command": "mode", "volume": "volume", "mode": "wt"}),
              {"ok": True}, "mode")
        listed = administer(ports["control"], {"command": "list"})["volumes"]
        equal(listed[0]["mode"], "wt", "mode in the list")


def administer(path, line):
    import socket
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(path)
        control.sendall(json.dumps(line).encode() + b"\n")
        return json.loads(control.makefile().readline())


CASES = [info, copies, patterns, errors, read_only, activation, encryption, verification, reopening]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("program", type=pathlib.Path, help="the program `entresol`")
    options.add_argument("--only", action="append", choices=[case.__name__ for case in CASES])
    arguments = options.parse_args()
    failures = 0
    for case in CASES:
        if arguments.only and case.__name__ not in arguments.only:
            continue
        with tempfile.TemporaryDirectory(prefix="nbd-") as directory:
            bench = Bench(arguments.program.resolve(), pathlib.Path(directory))
            try:
                note = case(bench)
                print(f"{case.__name__:<14} {note or 'passed'}", flush=True)
            except (Failed, nbd.Error, subprocess.TimeoutExpired) as error:
                failures += 1
                print(f"{case.__name__:<14} FAILED: {str(error)[-2000:]}", flush=True)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
