package io.entresol.grid.bench;

import io.entresol.grid.Target;
import java.io.IOException;

/** Access by RESP; each thread has a connection of its own. */
record RespDoor(Target target, int port, String cache) implements Door {
    @Override
    public Connection connect() throws IOException {
        RespClient client = new RespClient(target.host(), port, target.tls());
        if (target.user() != null) {
            client.authenticate(target.user(), target.password());
        }
        client.select(cache);
        return new Connection() {
            @Override
            public void put(byte[] key, byte[] value) throws IOException {
                client.set(key, value);
            }

            @Override
            public byte[] get(byte[] key) throws IOException {
                return client.get(key);
            }

            @Override
            public void close() throws IOException {
                client.close();
            }
        };
    }

    @Override
    public void close() {
        // Each thread closes its own.
    }
}
