#!/usr/bin/python3
"""A guest of QEMU keeps its file system while our server is killed and restarted under load.

Debian 12's kernel and a small initial file system boot under `-accel tcg`, with the only disk on
our export. The guest makes ext4 and writes files, each with its checksum and an fsync. The server
is killed and started again while it does; QEMU reconnects and sends again what was not answered.
At the end the guest is cut off without warning, boots once more, replays the journal, checks the
file system and compares every checksum it had told of. Last, the backing alone is checked.

At every kill, a copy of the backing is taken: also without the cache it must be a file system that
needs no more than its journal, since it is a consistent past of the disk.
"""

import os
import pathlib
import shutil
import subprocess
import threading
import time

from support import MIB, PATIENCE, Bench, Failed, Service, check, parser, run, table

MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
           "virtio_blk", "crc16", "libcrc32c", "crc32c_generic", "mbcache", "jbd2", "ext4"]
PROGRAMS = ["/sbin/mke2fs", "/sbin/e2fsck"]
DISK_BYTES = 256 * MIB

INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
# Some modules depend on others: what cannot be loaded yet is tried again.
for turn in 1 2 3 4; do for one in $(cat /modules/order); do insmod /modules/$one 2>/dev/null; done; done
for turn in $(seq 50); do [ -b /dev/vda ] && break; sleep 0.1; done
. /phase
sync; echo "GUEST end"; poweroff -f
"""

FILL = r"""
/tools/mke2fs -q -t ext4 -b 4096 /dev/vda || { echo "GUEST failed mke2fs"; poweroff -f; }
mkdir /disk; mount -t ext4 /dev/vda /disk || { echo "GUEST failed mount"; poweroff -f; }
number=0
while true; do
  number=$((number + 1)); slot=$((number % 60)); name=/disk/file$slot
  # Every third file replaces an older one by a rename, as careful programs do.
  [ $((number % 3)) = 0 ] && target=$name.new || target=$name
  echo "GUEST begin file$slot"
  head -c $((65536 + (number * 37 % 97) * 4096)) /dev/urandom |
    dd of=$target bs=64k conv=fsync 2>/dev/null || { echo "GUEST failed write"; poweroff -f; }
  sum=$(md5sum < $target | cut -d' ' -f1)
  [ $target = $name ] || { mv $target $name; sync; }
  echo "GUEST file$slot $sum $number"
done
"""

CHECK = r"""
mkdir /disk
/tools/e2fsck -E journal_only -y /dev/vda; echo "GUEST journal $?"
/tools/e2fsck -f -n /dev/vda; echo "GUEST fsck $?"
mount -t ext4 /dev/vda /disk || echo "GUEST failed mount"
for name in /disk/file*; do
  echo "GUEST sum $(basename $name) $(md5sum < $name | cut -d' ' -f1)"
done
umount /disk
/tools/e2fsck -f -n /dev/vda; echo "GUEST fsck $?"
"""


class Archive:
    """An initial file system: the `newc` format of cpio."""

    def __init__(self):
        self.parts = []
        self.seen = set()

    def add(self, name, data=b"", mode=0o100755):
        parent = os.path.dirname(name)
        if parent and parent not in self.seen:
            self.add(parent, mode=0o40755)
        if name in self.seen:
            return
        self.seen.add(name)
        fields = [len(self.seen), mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % field for field in fields)
        self.parts.append(padded(head + name.encode() + b"\0") + padded(data))

    def bytes(self):
        self.add("TRAILER!!!")
        return b"".join(self.parts)


def padded(data):
    return data + bytes(-len(data) % 4)


def kernel(arguments, bench):
    """The directory with Debian's kernel and its modules, downloaded if it is not there."""
    place = pathlib.Path(arguments.kernel)
    if not any(place.glob("boot/vmlinuz-*")):
        asked = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"],
                               capture_output=True, text=True, check=True)
        name = [line.split()[-1] for line in asked.stdout.splitlines() if "linux-image-6" in line]
        check(name, f"apt-cache knows no kernel for the guest: {asked.stdout}")
        directory = bench.file("kernel")
        directory.mkdir()
        subprocess.run(["apt-get", "download", name[0]], cwd=directory, check=True,
                       capture_output=True)
        package = next(directory.glob("*.deb"))
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg", "-x", package, place], check=True)
    return place


def initial(place, phase):
    """The initial file system that does `phase`."""
    archive = Archive()
    archive.add("init", INIT.encode())
    archive.add("phase", phase.encode())
    for directory in ["proc", "sys", "dev", "bin", "tmp", "etc"]:
        archive.add(directory, mode=0o40755)
    archive.add("etc/mtab", b"")
    archive.add("etc/mke2fs.conf", pathlib.Path("/etc/mke2fs.conf").read_bytes())
    archive.add("bin/busybox", pathlib.Path("/bin/busybox").read_bytes())
    order = []
    for name in MODULES:
        found = list(place.glob(f"lib/modules/*/kernel/**/{name}.ko"))
        if found:
            archive.add(f"modules/{name}.ko", found[0].read_bytes())
            order.append(f"{name}.ko")
    archive.add("modules/order", "\n".join(order).encode())
    for program in PROGRAMS:
        archive.add("tools/" + os.path.basename(program), pathlib.Path(program).read_bytes())
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for word in listed.stdout.split():
            if word.startswith("/"):
                archive.add(word.lstrip("/"), pathlib.Path(word).read_bytes())
    return archive.bytes()


class Guest:
    """A running guest and what it told of."""

    def __init__(self, bench, service, phase, name):
        place = kernel(bench.arguments, bench)
        image = bench.file(f"{name}.initial")
        image.write_bytes(initial(place, phase))
        self.lines = []
        self.more = threading.Condition()
        drive = ("driver=nbd,node-name=disk,server.type=unix,"
                 f"server.path={service.socket},export={service.name},"
                 "reconnect-delay=120,open-timeout=30")
        words = ["qemu-system-x86_64", "-accel", "tcg", "-m", "384", "-nodefaults", "-no-reboot",
                 "-display", "none", "-serial", "stdio",
                 "-kernel", next(place.glob("boot/vmlinuz-*")), "-initrd", image,
                 "-append", "console=ttyS0 panic=-1 quiet random.trust_cpu=on",
                 "-blockdev", drive, "-device", "virtio-blk-pci,drive=disk"]
        self.log = open(bench.file(f"{name}.console"), "wb")
        self.process = subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        bench.processes.append(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.log.write(line)
            self.log.flush()
            with self.more:
                self.lines.append(line.decode(errors="replace").strip())
                self.more.notify_all()
        with self.more:
            self.lines.append("GUEST gone")
            self.more.notify_all()

    def told(self):
        """What follows the word GUEST in its lines so far."""
        return [line.split()[1:] for line in list(self.lines) if line.startswith("GUEST ")]

    def wait_for(self, condition, what, patience):
        """Waits until `condition` holds of what it told."""
        end = time.monotonic() + patience
        with self.more:
            while not condition(self.told()):
                failed = [words for words in self.told() if words[0] in ["failed", "gone"]]
                left = end - time.monotonic()
                if failed or left <= 0:
                    tail = "\n".join(self.lines[-25:])
                    raise Failed(f"the guest did not {what} within {patience} s:\n{tail}")
                self.more.wait(min(left, 1.0))

    def runs(self):
        return self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join(PATIENCE)


def files(told):
    return [words for words in told if words[0].startswith("file")]


def examine(copy, when):
    """Replays the journal of a copy of the backing and checks it."""
    journal = subprocess.run(["e2fsck", "-E", "journal_only", "-y", copy],
                             capture_output=True, text=True, check=False)
    checked = subprocess.run(["e2fsck", "-f", "-n", copy],
                             capture_output=True, text=True, check=False)
    text = journal.stdout + journal.stderr + checked.stdout + checked.stderr
    # What an orphan list or a count holds is mended at the next mount, as after any power cut.
    if checked.returncode != 0:
        checked = subprocess.run(["e2fsck", "-f", "-p", copy],
                                 capture_output=True, text=True, check=False)
        text += checked.stdout + checked.stderr
    check(checked.returncode in (0, 1), f"the backing as it was {when}: e2fsck:\n{text}")


def life(arguments, mode):
    """One guest in one mode; returns a row of the table."""
    begun = time.monotonic()
    with Bench(arguments) as bench:
        backing = bench.file("backing", DISK_BYTES)
        service = Service(bench, backing, cache_bytes=96 * MIB, mode=mode).start()
        guest = Guest(bench, service, FILL, "fill")
        guest.wait_for(lambda told: len(files(told)) >= 3, "write its first files", 240)
        for turn in range(arguments.kills):
            goal = len(files(guest.told())) + arguments.files
            guest.wait_for(lambda told, goal=goal: len(files(told)) >= goal,
                           f"go on after {turn} kills", 240)
            service.kill()
            copy = bench.file("copy")
            shutil.copyfile(backing, copy)
            service.start()
            examine(copy, f"at kill {turn + 1}")
        goal = len(files(guest.told())) + arguments.files
        guest.wait_for(lambda told: len(files(told)) >= goal, "go on after the last kill", 240)
        guest.kill()
        service.restart_killed()
        sums, rows = expected(guest.told())
        compare(bench, service, sums)
        service.write_back()
        service.stop()
        examine(backing, "at the end")
        again = subprocess.run(["e2fsck", "-f", "-n", backing], capture_output=True, check=False)
        check(again.returncode == 0, "the backing is not clean at the end")
    return [mode, arguments.kills, rows, len(sums), "clean", f"{time.monotonic() - begun:.0f} s"]


def expected(told):
    """The checksum owed of each file, and how many were written. The file that was being written
    when the guest was cut off may be anything and is left out."""
    sums, unsure = {}, None
    for words in told:
        if words[0] == "begin":
            unsure = words[1]
        elif words[0].startswith("file") and len(words) == 3:
            sums[words[0]] = words[1]
            unsure = None
    if unsure:
        sums.pop(unsure, None)
    return sums, len(files(told))


def compare(bench, service, sums):
    """Boots again and compares all checksums."""
    guest = Guest(bench, service, CHECK, "check")
    guest.wait_for(lambda told: ["end"] in told, "check its disk", 240)
    told = guest.told()
    guest.kill()
    statuses = [words[1] for words in told if words[0] == "fsck"]
    check(statuses == ["0", "0"], f"e2fsck in the guest ended with {statuses}:\n"
          + "\n".join(guest.lines[-40:]))
    found = {words[1]: words[2] for words in told if words[0] == "sum"}
    wrong = {name: (found.get(name), owed) for name, owed in sums.items()
             if found.get(name) != owed}
    check(not wrong, f"{len(wrong)} of {len(sums)} files differ: {wrong}")


def main(arguments):
    rows = [life(arguments, mode) for mode in arguments.modes]
    table("a guest's disk on our export, the server killed under load",
          ["mode", "kills", "files written", "compared", "file system", "took"], rows)


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--kernel", default=str(pathlib.Path.home() / ".cache/entresol-guest"),
                         help="where Debian's kernel is unpacked, or will be")
    options.add_argument("--kills", type=int, default=4)
    options.add_argument("--files", type=int, default=12, help="files between two kills")
    options.add_argument("--modes", type=lambda text: text.split(","), default=["wt", "wb"])
    run(main, options.parse_args())
