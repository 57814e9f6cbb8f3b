#!/bin/sh
# Compares heaps with LLPL: the same classes, written for LLPL, run with its jar and with the
# adapter's, in turn, on a file in /dev/shm, in both stores and fences. LLPL is in no registry:
# name a folder with its sources, which is built if it was not (Debian's PMDK is installed).
# ./llpl.sh LLPL_FOLDER [ROUNDS [ENTRIES]]
set -eu
if [ $# -lt 1 ] || [ ! -f "$1/Makefile" ]; then
    echo "llpl.sh: expected a folder with LLPL's sources, found '${1:-nothing}'" >&2
    exit 2
fi
llpl=$(cd "$1" && pwd)
rounds=${2:-5}
entries=${3:-1000000}
cd "$(dirname "$0")"
missing=
for package in g++ libpmem-dev libpmemobj-dev libpmempool-dev; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y -q --no-install-recommends $missing >&2
fi
compiler=$(readlink -f "$(command -v javac)")
if [ ! -f "$llpl/target/classes/com/intel/pmem/llpl/linux/amd64/libllpl.so" ]; then
    make -C "$llpl" JAVA_HOME="${compiler%/bin/javac}" >&2
fi
mvn --batch-mode --quiet --file ../java/pom.xml install -DskipTests \
    --projects native,heap,llpl-adapter >&2
ours=
for module in native heap llpl-adapter; do
    ours="$ours:$(ls "$PWD/../java/$module/target/entresol-$module"-[0-9]*[0-9].jar)"
done
scratch=$(mktemp -d /dev/shm/compare.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
round=0
while [ "$round" -lt "$rounds" ]; do
    # Without the force it would take the file for one on a disk.
    PMEM_IS_PMEM_FORCE=1 java -cp "$llpl/target/classes" llpl/HeapCosts.java \
        "$scratch/heap" "$entries" >>"$scratch/llpl"
    rm "$scratch/heap"
    java -cp "${ours#:}" llpl/HeapCosts.java "$scratch/heap" "$entries" >>"$scratch/ours"
    rm "$scratch/heap"
    round=$((round + 1))
done
echo "microseconds of the processor, medians of $rounds rounds, $(java -version 2>&1 | head -n 1)"
python3 llpl/medians.py "$scratch/llpl" "$scratch/ours"
