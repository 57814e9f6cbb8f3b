package io.entresol.grid.bench;

import io.entresol.grid.Deployment;
import io.entresol.grid.Encoding;
import io.entresol.grid.Rest;
import io.entresol.grid.Target;
import io.entresol.grid.Template;
import io.entresol.grid.Undeploy;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;

/** A cache in RAM and one on flash that differ in nothing else; both go when it is closed. */
final class Pair implements AutoCloseable {
    private static final long LEAST_CAPACITY = 64L << 20;
    private static final long LEAST_MEMORY = 32L << 20;
    /** A flash cache has twice the room of its entries: reclaim has some to work in. */
    private static final int ROOM = 2;
    /** One in so many entries is in memory. */
    private static final int IN_MEMORY = 10;

    private final Rest rest;
    private final Set<Storage> deployed = EnumSet.noneOf(Storage.class);
    private final Map<Storage, Door> doors = new EnumMap<>(Storage.class);

    /** The two, in the order in which the first round takes them. */
    enum Storage {
        RAM, FLASH;

        String cache() {
            return "entresol-bench-" + name().toLowerCase(java.util.Locale.ROOT);
        }
    }

    /** Deploys both, for so many entries of this size, and opens doors to them. */
    Pair(Target target, int respPort, Protocol protocol, long entries, int valueBytes) {
        rest = target.rest();
        long bytes = entries * (valueBytes + 200L);
        Deployment.Flash flash = new Deployment.Flash(
                "" + Math.max(LEAST_CAPACITY, ROOM * bytes),
                "" + (LEAST_MEMORY + bytes / IN_MEMORY), null, false, null, null, false);
        Encoding encoding = protocol == Protocol.RESP ? Encoding.RESP : Encoding.BYTES;
        try {
            for (Storage storage : Storage.values()) {
                boolean ram = storage == Storage.RAM;
                new Deployment(Template.parse(ram ? "ram" : "flash"), encoding,
                        ram ? null : flash, ram ? OptionalLong.empty()
                        : OptionalLong.of(Math.max(1, entries / IN_MEMORY)),
                        List.of(), List.of(), null).deploy(rest, storage.cache());
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
        doors.values().forEach(Door::close);
        deployed.forEach(storage -> Undeploy.drop(rest, storage.cache()));
    }
}
