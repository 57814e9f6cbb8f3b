package io.entresol.grid;

import picocli.CommandLine.Option;

/** Options of commands that ask a running node. */
public final class Target {
    @Option(names = "--server", paramLabel = "HOST:PORT",
            defaultValue = "${env:ENTRESOL_GRID_SERVER:-127.0.0.1:11222}",
            description = "a running node; else ENTRESOL_GRID_SERVER of the environment"
                    + " (${DEFAULT-VALUE})")
    private String server;

    @Option(names = "--user", paramLabel = "NAME", description = "where users are asked for")
    private String user;

    /** A default would have what looks like a variable in it replaced. */
    @Option(names = "--password", paramLabel = "PASSWORD",
            description = "its password; else ENTRESOL_GRID_PASSWORD of the environment")
    private String password;

    @Option(names = "--json", description = "print JSON")
    private boolean json;

    /** The node. */
    public Rest rest() {
        return rest(server);
    }

    /** Another node, asked by the same user. */
    public Rest rest(String address) {
        if (user != null && password() == null) {
            throw new GridException("--user " + user + " has no password; put it into"
                    + " ENTRESOL_GRID_PASSWORD, or give --password");
        }
        return new Rest(address, user, password());
    }

    /** Whether JSON is wanted. */
    public boolean json() {
        return json;
    }

    /** The host's part of the address. */
    public String host() {
        return server.substring(0, server.lastIndexOf(':'));
    }

    /** The port's part of the address. */
    public int port() {
        return Integer.parseInt(server.substring(server.lastIndexOf(':') + 1));
    }

    /** Who asks; null: nobody in particular. */
    public String user() {
        return user;
    }

    /** The user's password. */
    public String password() {
        return password == null ? System.getenv("ENTRESOL_GRID_PASSWORD") : password;
    }
}
