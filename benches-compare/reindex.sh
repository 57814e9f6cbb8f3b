#!/bin/sh
# How fast an index in memory is made anew from flash, beside bounds of the same machine; leaves
# nothing but Maven's repository and target/.
# ./reindex.sh [ENTRIES [ROUNDS]]
set -eu
cd "$(dirname "$0")"
mvn --batch-mode --quiet --file ../java/pom.xml install -DskipTests \
    --projects .,native,heap,binding,infinispan,jdbc,grid
mvn --batch-mode --quiet --file java/pom.xml package
scratch=$(mktemp -d "${COMPARE_DIR:-$PWD}/reindex.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
java -cp "java/target/classes:$(cat java/target/classpath)" io.entresol.compare.Reindex \
    "$scratch" "$@"
