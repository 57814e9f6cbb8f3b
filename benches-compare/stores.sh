#!/bin/sh
# Compares stores of Infinispan's caches; leaves nothing but Maven's repository and target/.
# ./stores.sh [ENTRIES [SECONDS [ROUNDS [CAP_MIB [CONTESTANT,...]]]]]
set -eu
cd "$(dirname "$0")"
mvn --batch-mode --quiet --file ../java/pom.xml install -DskipTests \
    --projects .,native,heap,binding,infinispan,jdbc,grid
mvn --batch-mode --quiet --file java/pom.xml package
scratch=$(mktemp -d "${COMPARE_DIR:-$PWD}/compare.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
java -cp "java/target/classes:$(cat java/target/classpath)" io.entresol.compare.Stores \
    "$scratch" "$@"
