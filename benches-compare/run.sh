#!/bin/sh
# Runs the comparison: installs what is missing (Debian), builds, plays, prints, leaves nothing.
# Options go to the program: ./run.sh --quick --rounds 3 --json figures.json
# ./run.sh resp: entresol serve beside redis-server.
set -eu
cd "$(dirname "$0")"

missing=
for package in librocksdb-dev memcached redis-server; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null; then
        echo "run.sh: install$missing first" >&2
        exit 2
    fi
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y -q --no-install-recommends $missing >&2
fi

cargo build --release --quiet
if [ "${1:-}" = resp ]; then
    shift
    (cd .. && cargo build --release --quiet --package entresol)
    set -- resp --entresol "${CARGO_TARGET_DIR:-../target}/release/entresol" "$@"
fi
scratch=$(mktemp -d "${COMPARE_DIR:-$PWD}/compare.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
"${CARGO_TARGET_DIR:-target}/release/compare" --dir "$scratch" "$@"
