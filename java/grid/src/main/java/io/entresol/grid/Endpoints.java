package io.entresol.grid;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.infinispan.commons.configuration.io.ConfigurationWriter;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.parsing.ParserRegistry;

/** The initial caches of RESP and memcached; each node is configured with them. */
final class Endpoints {
    static final String RESP = "respCache";
    static final String MEMCACHED = "memcachedCache";

    private Endpoints() {
    }

    static String xml(NodePlan plan) {
        Deployment asked = plan.endpoints();
        Map<String, Configuration> caches = new LinkedHashMap<>();
        caches.put(RESP, with(asked, Encoding.RESP, List.of(0)).configuration());
        caches.put(MEMCACHED, with(asked, Encoding.BYTES, List.of()).configuration());
        if (plan.users() != null) {
            caches.replaceAll((name, cache) -> Secured.asking(cache));
        }
        return xml(caches);
    }

    /** Configurations as Infinispan writes them, in full: they are read again. */
    static String xml(Map<String, Configuration> caches) {
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        ConfigurationWriter writer = ConfigurationWriter.to(text).clearTextSecrets(true).build();
        new ParserRegistry().serialize(writer, null, caches);
        writer.close();
        return text.toString(StandardCharsets.UTF_8);
    }

    private static Deployment with(Deployment asked, Encoding encoding, List<Integer> databases) {
        return new Deployment(asked.template(), encoding, asked.flash(), asked.entriesInHeap(),
                List.of(), databases, null);
    }
}
