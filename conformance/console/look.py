#!/usr/bin/python3
"""Chromium looks at the consoles of `entresol serve`, `entresol volume serve` and a grid's stores
under loads."""

import argparse
import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from checks import Failed, check, free_port, until  # noqa: E402

TIMEOUT = 60
TOKEN = "0123456789abcdef0123456789abcdef"
HOSTILE = "<img/src=x/onerror=document.title='broken'>"
# Bars: milliseconds until something is seen, and percent of a core while the page is open.
FIRST_PAINT_MS = 1000
PROCESSOR_PERCENT = 1.0
WIDTHS = (400, 1600)
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    """A headless Chromium, by the WebDriver protocol."""

    def __init__(self, directory):
        program = shutil.which("chromedriver")
        if program is None:
            sys.exit("look.py: chromedriver is not there; install chromium and chromium-driver")
        self.port = free_port()
        self.driver = subprocess.Popen(
            [program, f"--port={self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.session = ""
        until("chromedriver answers", self.answers)
        options = {
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                     f"--user-data-dir={directory / 'profile'}"],
        }
        asked = {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL"},
        }}}
        self.session = f"/session/{self.ask('/session', asked)['sessionId']}"

    def answers(self):
        try:
            return self.ask("/status", None)["ready"]
        except OSError:
            return False

    def ask(self, path, body):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data,
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise Failed(f"{path}: {error.read().decode()[:500]}") from error

    def command(self, name, **parameters):
        """A command of the DevTools."""
        return self.ask(f"{self.session}/goog/cdp/execute",
                        {"cmd": name, "params": parameters})

    def go(self, address):
        self.ask(f"{self.session}/url", {"url": address})

    def script(self, text):
        return self.ask(f"{self.session}/execute/sync", {"script": text, "args": []})

    def element(self, selector):
        found = self.ask(f"{self.session}/element", {"using": "css selector", "value": selector})
        return f"{self.session}/element/{found[ELEMENT]}"

    def type(self, selector, text):
        self.ask(f"{self.element(selector)}/value", {"text": text})

    def click(self, selector):
        self.ask(f"{self.element(selector)}/click", {})

    def size(self, width):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=False)

    def theme(self, name):
        self.command("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path):
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def complaints(self):
        """The errors in the browser's log; a refused sign-in is meant."""
        entries = self.ask(f"{self.session}/se/log", {"type": "browser"})
        return [one["message"] for one in entries
                if one["level"] == "SEVERE" and " 401 " not in one["message"]]

    def close(self):
        if self.session:
            with contextlib.suppress(Failed, OSError):
                request = urllib.request.Request(
                    f"http://127.0.0.1:{self.port}{self.session}", method="DELETE")
                urllib.request.urlopen(request, timeout=TIMEOUT).close()
        self.driver.terminate()
        self.driver.wait(TIMEOUT)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """An `entresol serve` whose console asks for a token."""

    def __init__(self, program, directory):
        token = directory / "token"
        token.write_text(TOKEN + "\n")
        self.process = subprocess.Popen(
            [program, "serve", "--dir", directory / "data", "--capacity", "512MiB",
             "--memory", "64MiB", "--port", "0", "--admin-port", "0", "--admin-token", token,
             "--slowlog-log-slower-than", "2000"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        words = self.process.stdout.readline().split()
        check(words[:1] == ["listening"], f"the server said {words}")
        ports = dict(word.split("=") for word in words[1:])
        self.port, self.console = int(ports["port"]), f"http://127.0.0.1:{ports['admin']}/"

    def processor_seconds(self):
        return processor_seconds(self.process.pid)

    def close(self):
        self.process.terminate()
        self.process.wait(TIMEOUT)


class Load:
    """Clients that read and write until they are told to stop."""

    def __init__(self, port):
        self.ends = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(port, one)) for one in range(2)]
        for thread in self.threads:
            thread.start()

    def run(self, port, one):
        with socket.create_connection(("127.0.0.1", port)) as stream, stream.makefile("rwb") as file:
            words = ["CLIENT", "SETNAME", HOSTILE]
            file.write("".join([f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n"
                                                        for word in words)]).encode())
            file.flush()
            check(file.readline() == b"+OK\r\n", "the server does not take the client's name")
            number = 0
            while not self.ends.is_set():
                for _ in range(200):
                    number += 1
                    key = number * 7919 % 200_000
                    if number % 3 == 0:
                        file.write(f"SET key:{key} {'v' * (300 + number % 900)}\r\n".encode())
                    else:
                        file.write(f"EXISTS key:{key} key:{key // 50}\r\n".encode())
                        file.write(f"STRLEN key:{key // (1 + one * 40)}\r\n".encode())
                file.write(b"PING\r\n")
                file.flush()
                while file.readline() != b"+PONG\r\n":
                    pass

    def close(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()


class Volumes:
    """An `entresol volume serve` of one volume, whose console asks for no token."""

    def __init__(self, program, directory):
        cache, backing = directory / "cache", directory / "<b>backing"
        backing.touch()
        os.truncate(backing, 64 << 20)
        subprocess.run([program, "volume", "create", "vm1", "--cache", cache, "--capacity", "64MiB",
                        "--backing", backing, "--mode", "wb"], check=True,
                       stdout=subprocess.DEVNULL)
        self.socket = directory / "nbd"
        self.process = subprocess.Popen(
            [program, "volume", "serve", "--cache", cache, "--unix", self.socket,
             "--admin-port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        words = self.process.stdout.readline().split()
        check(words[:1] == ["listening"], f"the server said {words}")
        ports = dict(word.split("=") for word in words[1:])
        self.console = f"http://127.0.0.1:{ports['admin']}/"

    def close(self):
        self.process.terminate()
        self.process.wait(TIMEOUT)


class Guest:
    """A client of a volume that reads and writes until it is told to stop."""

    def __init__(self, path):
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(path,))
        self.thread.start()

    def run(self, path):
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(os.fspath(path))
            with stream.makefile("rwb") as file:
                check(file.read(18)[:8] == b"NBDMAGIC", "the server does not speak NBD")
                # No zeros behind the size; the option is the name of the export.
                file.write(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 3) + b"vm1")
                file.flush()
                file.read(10)
                number = 0
                while not self.ends.is_set():
                    number += 1
                    offset = number * 7919 % 16384 * 4096
                    kind, payload = (1, b"g" * 4096) if number % 3 == 0 else (0, b"")
                    file.write(struct.pack(">IHHQQI", 0x25609513, 0, kind, number, offset, 4096))
                    file.write(payload)
                    file.flush()
                    magic, error, cookie = struct.unpack(">IIQ", file.read(16))
                    check((magic, error, cookie) == (0x67446698, 0, number), "a request failed")
                    if kind == 0:
                        file.read(4096)

    def close(self):
        self.ends.set()
        self.thread.join()


class Grid:
    """A node of a grid with a second one, and a cache whose name is a piece of a page."""

    def __init__(self, program, directory):
        self.program, self.directory = program, directory / "grid"
        offset = next(offset for offset in range(20_000, 30_000, 500) if is_free(offset))
        started = self.run("start", "--dir", self.directory, "--nodes", "2", "--port-offset", offset,
                           "--memory", "512m", "--endpoint-capacity", "256MiB",
                           "--endpoint-memory", "64MiB", "--detach")
        self.pid = int(re.search(r"process (\d+)", started)[1])
        self.port = int(re.search(r"RESP +127\.0\.0\.1:(\d+)", started)[1])
        self.console = re.search(r"stores +(\S+)", started)[1]
        self.run("deploy", HOSTILE, "--server", f"127.0.0.1:{11222 + offset}",
                 "--capacity", "64MiB", "--memory", "32MiB")

    def run(self, *arguments):
        return subprocess.run([self.program, *map(str, arguments)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def processor_seconds(self):
        return processor_seconds(self.pid)

    def close(self):
        self.run("stop", "--dir", self.directory)


def is_free(offset):
    """Whether nobody has a port of two nodes."""
    for port in (6379, 7800, 7840, 11211, 11222, 11765):
        for node in (0, 100):
            with socket.socket() as one:
                try:
                    one.bind(("127.0.0.1", port + offset + node))
                except OSError:
                    return False
    return True


class GridLoad(Load):
    """Clients of a grid."""

    def run(self, port, one):
        def command(*words):
            parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
            return f"*{len(words)}\r\n{parts}".encode()
        address = ("127.0.0.1", port)
        with socket.create_connection(address, TIMEOUT) as stream, stream.makefile("rwb") as file:
            number = 0
            while not self.ends.is_set():
                for _ in range(100):
                    number += 1
                    key = f"key:{number * 7919 % 50_000}"
                    if number % 3 == 0:
                        file.write(command("SET", key, "v" * (300 + number % 900)))
                    else:
                        file.write(command("GET", f"key:{number * 7919 // (7 + one) % 50_000}"))
                file.write(command("PING"))
                file.flush()
                while file.readline() != b"PONG\r\n":
                    pass


def sign_in(browser, server):
    browser.go(server.console)
    check("admin-token" in browser.script("return document.body.innerText"),
          "the form does not say which option holds the token")
    browser.type("#token", "a-wrong-token-of-some-length")
    browser.click("#sign-in button")
    until("the form refuses another token",
          lambda: browser.script("return !document.getElementById('refused').hidden"))
    browser.script("document.getElementById('token').value = ''")
    browser.type("#token", TOKEN)
    browser.click("#sign-in button")
    until("the console", lambda: browser.script("return !!document.getElementById('now')"))
    check(TOKEN not in browser.script("return location.href + document.cookie"),
          "the token is in the address, or a script can see it")
    print("a sign-in: ok")


def first_paint(browser, server):
    """The slowest of three first paints, milliseconds."""
    browser.go(server.console)
    times = []
    for _ in range(3):
        browser.ask(f"{browser.session}/refresh", {})
        paint = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
        times.append(until("a first paint", lambda: browser.script(paint)))
    print(f"first paint: {max(times):.0f} ms at most, bar {FIRST_PAINT_MS} ms")
    check(max(times) <= FIRST_PAINT_MS, "the first paint takes too long")


def looks(browser, pictures, name):
    """The page at both widths in both themes."""
    for width in WIDTHS:
        browser.size(width)
        for theme in ("light", "dark"):
            browser.theme(theme)
            wide = browser.script("return document.documentElement.scrollWidth")
            check(wide <= width, f"at {width} px the page is {wide} px wide")
            if pictures:
                browser.picture(pictures / f"{name}-{width}-{theme}.png")
    print(f"{len(WIDTHS)} widths, both themes: ok")


def key(browser):
    browser.size(WIDTHS[1])
    browser.type("#key", "key:7919")
    browser.click("#look button")
    until("an entry or that there is none",
          lambda: "key:7919" in browser.script("return document.getElementById('found').innerText"))
    print("a look at a key: ok")


def refreshes(browser, figure, expected, within="main"):
    figure = f"return document.querySelector('{within} data[data-stat=\"{figure}\"]').value"
    before = browser.script(figure)
    until("newer figures", lambda: browser.script(figure) != before)
    title = browser.script("return document.title")
    check(title == expected, f"a name that somebody chose ran as a script: {title}")
    print("figures become new by themselves: ok")


def volumes(browser, server, pictures):
    """The page of volumes, whose backing has a piece of a page in its name."""
    first_paint(browser, server)
    until("figures of the volume",
          lambda: "<b>backing" in browser.script("return document.body.innerText"))
    refreshes(browser, "/volumes/0/requests/reads", "Entresol volumes")
    looks(browser, pictures, "volumes")
    drawn = browser.script("return document.querySelectorAll('.drawing polyline').length")
    check(drawn > 12, f"the charts of volumes have {drawn} lines")
    check("Healthy" in browser.script("return document.querySelector('.state').innerText"),
          "the volumes are not healthy")


def grid(browser, node, options):
    """The page of a grid's stores, one of which has a piece of a page as its name."""
    load = GridLoad(node.port)
    try:
        browser.go(node.console)
        time.sleep(options.load)
        first_paint(browser, node)
        body = browser.script("return document.body.innerText")
        check(HOSTILE in body and "node-1" in body, "a store or a node is not on the page")
        refreshes(browser, "/store/gets", "Stores of node node-0", "[data-store=respCache]")
        looks(browser, options.pictures, "grid")
        drawn = browser.script("return document.querySelectorAll('.drawing polyline').length")
        check(drawn > 12, f"the charts of stores have {drawn} lines")
        browser.click("td a code")
        until("the page of one store", lambda: "?cache=" in browser.script("return location.href"))
        looks(browser, options.pictures, "grid-store")
        check("Healthy" in browser.script("return document.querySelector('.state').innerText"),
              "the stores are not healthy")
    finally:
        load.close()
    processor(browser, node, options.idle)


def processor(browser, server, seconds):
    """What the open page costs the server: with it less without it."""
    def share():
        begun, used = time.monotonic(), server.processor_seconds()
        time.sleep(seconds)
        return 100 * (server.processor_seconds() - used) / (time.monotonic() - begun)
    browser.go("about:blank")
    closed = share()
    browser.go(server.console)
    until("the console", lambda: browser.script("return !!document.getElementById('now')"))
    opened = share()
    print(f"processor: {opened:.2f} % of a core with the page open, {closed:.2f} % without, "
          f"bar for the difference {PROCESSOR_PERCENT} %")
    check(opened - closed <= PROCESSOR_PERCENT, "the page takes too much of the processor")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--grid", type=pathlib.Path, help="the grid's program, if it is looked at")
    parser.add_argument("--load", type=float, default=15, help="seconds of load before the looks")
    parser.add_argument("--idle", type=float, default=30, help="seconds of each measurement")
    parser.add_argument("--pictures", type=pathlib.Path, help="a directory to leave pictures in")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        directory = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = Server(options.program, directory)
        stack.callback(server.close)
        browser = Browser(directory)
        stack.callback(browser.close)
        try:
            load = Load(server.port)
            try:
                sign_in(browser, server)
                time.sleep(options.load)
                first_paint(browser, server)
                looks(browser, options.pictures, "console")
                refreshes(browser, "/store/gets", "Entresol")
                key(browser)
            finally:
                load.close()
            cached = Volumes(options.program, directory)
            stack.callback(cached.close)
            guest = Guest(cached.socket)
            try:
                volumes(browser, cached, options.pictures)
            finally:
                guest.close()
            processor(browser, server, options.idle)
            if options.grid:
                node = Grid(options.grid, directory)
                stack.callback(node.close)
                grid(browser, node, options)
            complaints = browser.complaints()
            check(not complaints, f"the browser complains: {complaints}")
        except Failed as error:
            print(f"failed: {error}")
            return 1
    return 0


sys.exit(main())
