package io.entresol.grid.bench;

import io.entresol.grid.Target;

/** The protocol of a load. */
enum Protocol {
    HOTROD("Hot Rod") {
        @Override
        Door open(Target target, int respPort, String cache) {
            return new HotRodDoor(target, cache);
        }
    },
    RESP("RESP") {
        @Override
        Door open(Target target, int respPort, String cache) {
            return new RespDoor(target, respPort, cache);
        }
    };

    private final String title;

    Protocol(String title) {
        this.title = title;
    }

    abstract Door open(Target target, int respPort, String cache);

    String title() {
        return title;
    }
}
