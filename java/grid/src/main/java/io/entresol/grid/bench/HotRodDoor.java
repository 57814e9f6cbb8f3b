package io.entresol.grid.bench;

import io.entresol.grid.Target;
import org.infinispan.client.hotrod.RemoteCache;
import org.infinispan.client.hotrod.RemoteCacheManager;
import org.infinispan.client.hotrod.configuration.ConfigurationBuilder;
import org.infinispan.commons.marshall.IdentityMarshaller;

/** Access by Hot Rod; one client serves all threads. */
final class HotRodDoor implements Door {
    private final RemoteCacheManager manager;
    private final RemoteCache<byte[], byte[]> cache;

    HotRodDoor(Target target, String name) {
        ConfigurationBuilder builder = new ConfigurationBuilder();
        builder.addServer().host(target.host()).port(target.port());
        builder.marshaller(IdentityMarshaller.INSTANCE);
        if (target.user() != null) {
            builder.security().authentication().username(target.user())
                    .password(target.password());
        }
        target.tls().ifPresent(tls -> builder.security().ssl().enable().sslContext(tls)
                .sniHostName(target.host()));
        manager = new RemoteCacheManager(builder.build());
        cache = manager.getCache(name);
    }

    @Override
    public Connection connect() {
        return new Connection() {
            @Override
            public void put(byte[] key, byte[] value) {
                cache.put(key, value);
            }

            @Override
            public byte[] get(byte[] key) {
                return cache.get(key);
            }

            @Override
            public void close() {
                // The client's connections go with the door.
            }
        };
    }

    @Override
    public void close() {
        manager.close();
    }
}
