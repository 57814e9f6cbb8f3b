#!/bin/sh
# Nodes of Cassandra 5.0 with tables on flash, and stock, by turns at the same load and with the same
# memory; leaves nothing but target/ and Maven's repository. Options: ./cassandra.sh --help
set -eu
cd "$(dirname "$0")"
case " $* " in
    *" --help "* | *" -h "*)
        cat cassandra/help.txt
        exit 0
        ;;
esac
module=$PWD/../java/cassandra
mvn --batch-mode --quiet --file ../java/pom.xml package -DskipTests \
    --projects cassandra --also-make
for jar in "$module"/target/entresol-cassandra-*.jar; do
    [ "${jar%-tests.jar}" != "$jar" ] || break
done
scratch=$(mktemp -d "${COMPARE_DIR:-$PWD}/compare.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir "$scratch/classes"
javac --release 17 -nowarn -d "$scratch/classes" -cp "$module/target/lib/*" \
    cassandra/io/entresol/compare/cassandra/*.java
echo "Premain-Class: io.entresol.compare.cassandra.InNode" >"$scratch/manifest"
jar --create --file "$scratch/agent.jar" --manifest "$scratch/manifest" -C "$scratch/classes" .
# Not by exec: what was written is removed afterwards.
java -Xmx512m -XX:+UseSerialGC \
    -Dlogback.configurationFile=io/entresol/cassandra/node/silent.xml \
    -cp "$scratch/agent.jar:$jar:$module/target/lib/*" \
    io.entresol.compare.cassandra.Compare --dir "$scratch" --agent "$scratch/agent.jar" \
    --launcher "$module/bin/entresol-cassandra" "$@"
