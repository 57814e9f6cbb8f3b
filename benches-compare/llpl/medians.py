"""Prints the medians of each operation in two files of "name, tab, figure", and their ratio."""

import statistics
import sys


def figures(path):
    """The figures of each operation, in the order in which they come."""
    found = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name, figure = line.rstrip("\n").split("\t")
            found.setdefault(name, []).append(float(figure))
    return found


def main():
    theirs, ours = (figures(path) for path in sys.argv[1:3])
    print(f"{'operation':<36}{'LLPL':>8}{'adapter':>9}{'ratio':>7}")
    for name, each in theirs.items():
        peer, own = statistics.median(each), statistics.median(ours[name])
        print(f"{name:<36}{peer:>8.2f}{own:>9.2f}{own / peer:>7.2f}")


if __name__ == "__main__":
    main()
