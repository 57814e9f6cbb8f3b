package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.entresol.infinispan.EntresolStore;
import java.util.List;
import org.infinispan.commons.dataconversion.internal.Json;
import org.junit.jupiter.api.Test;

/** How long calls of stores take, as the console of these is told. */
class LatenciesTest {
    /** Two digits of a latency are kept. */
    private static List<List<Integer>> of(Json taken, String kind) {
        return taken.at(kind).asJsonList().stream().map(pair -> List.of(
                Math.round(pair.at(0).asLong() / 1_000_000f), pair.at(1).asInteger())).toList();
    }

    @Test
    void eachCallIsToldOnceUnderItsKind() {
        Latencies latencies = new Latencies();
        for (int call = 0; call < 3; call++) {
            latencies.read(50_000_000);
        }
        latencies.read(900_000_000);
        latencies.write(Long.MAX_VALUE);
        Json taken = Json.read(latencies.taken());
        assertEquals(List.of(50, 3), of(taken, "reads").get(0));
        assertEquals(2, of(taken, "reads").size());
        assertEquals(1, of(taken, "writes").size());
        assertEquals("{\"reads\":[],\"writes\":[]}", latencies.taken());
    }

    @Test
    void aStoreHasLatenciesOfItsOwn() {
        Latencies.OfStores all = new Latencies.OfStores();
        EntresolStore<String, String> store = new EntresolStore<>();
        assertSame(all.of(store), all.of(store));
        assertNotSame(all.of(store), all.of(new EntresolStore<>()));
    }
}
