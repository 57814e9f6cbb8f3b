package io.entresol.grid;

import java.util.Arrays;
import java.util.stream.Collectors;

/** Addresses of nodes, as JGroups writes them. */
final class Members {
    private static final int PORT_MAX = 65_535;

    private Members() {
    }

    /** {@code HOST[PORT],…} from texts {@code HOST:PORT}. */
    static String parse(String option, String... addresses) {
        return Arrays.stream(addresses).map(address -> one(option, address)).distinct()
                .collect(Collectors.joining(","));
    }

    private static String one(String option, String address) {
        int colon = address.lastIndexOf(':');
        String port = address.substring(colon + 1);
        if (colon < 1 || !port.matches("[0-9]{1,5}") || Integer.parseInt(port) < 1
                || Integer.parseInt(port) > PORT_MAX) {
            throw new GridException(option + " has '" + address + "'; expected HOST:PORT, such as"
                    + " 10.0.0.2:7800");
        }
        return address.substring(0, colon) + "[" + port + "]";
    }
}
