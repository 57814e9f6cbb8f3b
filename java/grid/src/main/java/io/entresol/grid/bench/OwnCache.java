package io.entresol.grid.bench;

import io.entresol.grid.GridException;
import io.entresol.grid.Rest;
import io.entresol.grid.Table;
import io.entresol.grid.Target;
import java.util.Locale;

/**
 * A cache that people deployed, for one load at a time: the cache and its entries stay.
 *
 * @param target where the grid is
 * @param name the cache's
 * @param work the operations of the load
 * @param protocol the protocol of the load
 * @param respPort the port for RESP
 */
record OwnCache(Target target, String name, Work work, Protocol protocol, int respPort) {
    /** What is done. */
    enum Work { WRITE, READ, MIX }

    /** Does it once, and tells of it. */
    int measure(Load load, int entries, int writes) {
        if (!target.rest().exists(Rest.cache(name))) {
            throw new GridException("there is no cache '" + name + "'; deploy it, for Hot Rod with"
                    + " --encoding bytes and for RESP with --encoding resp: entresol-grid deploy "
                    + name);
        }
        Round round;
        try (Door door = protocol.open(target, respPort, name)) {
            round = switch (work) {
                case WRITE -> load.write(door);
                case READ -> load.read(door);
                case MIX -> load.mix(door, entries, writes);
            };
        }
        if (target.json()) {
            System.out.println(round.json().set("cache", name)
                    .set("execute", work.name().toLowerCase(Locale.ROOT)));
            return 0;
        }
        Table table = new Table("test", "avg test time s", "avg TP per thread", "total TP", "MB/s",
                "read us", "write us");
        table.add(work.name().toLowerCase(Locale.ROOT) + ", " + name + ", " + protocol.title(),
                String.format(Locale.ROOT, "%.2f", round.threadSeconds()),
                Math.round(round.threadRate()), Math.round(round.rate()),
                String.format(Locale.ROOT, "%.1f", round.megabytes(load.valueBytes())),
                Math.round(round.readMicros()), Math.round(round.writeMicros()));
        System.out.print(table);
        return 0;
    }
}
