package io.entresol.grid.bench;

import io.entresol.grid.Deployment;
import io.entresol.grid.Encoding;
import io.entresol.grid.GridException;
import io.entresol.grid.Rest;
import io.entresol.grid.Target;
import io.entresol.grid.Template;
import io.entresol.grid.Undeploy;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;

/** Caches that differ only in where their entries are kept; closing this removes all of them. */
final class Compared implements AutoCloseable {
    private static final long LEAST_CAPACITY = 64L << 20;
    private static final long LEAST_MEMORY = 32L << 20;
    /** A flash cache has twice the room of its entries: reclaim has some to work in. */
    private static final int ROOM = 2;
    /** One in so many entries is in memory. */
    private static final int IN_MEMORY = 10;

    private final Rest rest;
    /** Those whose caches are there; taken out by whoever drops them. */
    private final Set<Storage> deployed = Collections.synchronizedSet(
            EnumSet.noneOf(Storage.class));
    private final Map<Storage, Door> doors = new EnumMap<>(Storage.class);
    /** Ctrl-C ends the program with the caches there: the next run would find them. */
    private final Thread interrupted = new Thread(this::dropAtEnd, "drops caches");

    /** What a cache is kept in, and what the tutorial has of it. */
    enum Storage {
        RAM("RAM", "21,796", "207.9", "23,401", "223.2", null),
        FLASH("flash", "17,185", "163.9", "10,279", "98.0", null),
        /** What Infinispan takes for any store. */
        FLOOR("floor", "-", "-", "-", "-",
                "<store class=\"" + FloorStore.class.getName() + "\" segmented=\"true\"/>"),
        SIFS("SoftIndexFileStore", "-", "-", "-", "-", "<file-store/>"),
        ROCKSDB("RocksDB", "-", "-", "-", "-", "<rocksdb-store"
                + " xmlns=\"urn:infinispan:config:store:rocksdb:16.0\"/>");

        final String title;
        final String tutorialWrites;
        final String tutorialWrittenMegabytes;
        final String tutorialReads;
        final String tutorialReadMegabytes;
        /** The element of a store that is not ours; null: none. */
        private final String element;

        Storage(String title, String writes, String writtenMegabytes, String reads,
                String readMegabytes, String element) {
            this.title = title;
            tutorialWrites = writes;
            tutorialWrittenMegabytes = writtenMegabytes;
            tutorialReads = reads;
            tutorialReadMegabytes = readMegabytes;
            this.element = element;
        }

        String cache() {
            return "entresol-bench-" + option();
        }

        String option() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Deploys them, for so many entries of this size, and opens doors to them. */
    Compared(Target target, int respPort, Protocol protocol, List<Storage> storages, long entries,
            int valueBytes) {
        rest = target.rest();
        long bytes = entries * (valueBytes + 200L);
        Deployment.Flash flash = new Deployment.Flash(
                "" + Math.max(LEAST_CAPACITY, ROOM * bytes),
                "" + (LEAST_MEMORY + bytes / IN_MEMORY), null, false, null, null, false);
        Runtime.getRuntime().addShutdownHook(interrupted);
        Encoding encoding = protocol == Protocol.RESP ? Encoding.RESP : Encoding.BYTES;
        try {
            for (Storage storage : storages) {
                boolean ram = storage == Storage.RAM;
                boolean ours = storage == Storage.FLASH;
                Deployment deployment = new Deployment(Template.parse(ours ? "flash" : "ram"),
                        encoding, ours ? flash : null, ram ? OptionalLong.empty()
                        : OptionalLong.of(Math.max(1, entries / IN_MEMORY)),
                        List.of(), List.of(), null);
                if (storage.element == null) {
                    deployment.deploy(rest, storage.cache());
                } else {
                    deployment.deployOn(rest, storage.cache(), storage.element);
                }
                deployed.add(storage);
                doors.put(storage, protocol.open(target, respPort, storage.cache()));
            }
        } catch (RuntimeException failure) {
            close();
            throw failure;
        }
    }

    Door door(Storage storage) {
        return doors.get(storage);
    }

    @Override
    public void close() {
        try {
            Runtime.getRuntime().removeShutdownHook(interrupted);
        } catch (IllegalStateException ending) {
            // It drops them.
            return;
        }
        doors.values().forEach(Door::close);
        drop();
    }

    private void dropAtEnd() {
        try {
            drop();
        } catch (GridException failure) {
            System.err.println("entresol-grid: caches entresol-bench-… may be left: "
                    + failure.getMessage() + "; drop them: entresol-grid undeploy NAME");
        }
    }

    private void drop() {
        for (Storage storage : Storage.values()) {
            if (deployed.remove(storage)) {
                Undeploy.drop(rest, storage.cache());
            }
        }
    }
}
