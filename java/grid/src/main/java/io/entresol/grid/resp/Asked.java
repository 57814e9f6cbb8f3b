package io.entresol.grid.resp;

import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import org.infinispan.server.resp.RespCommand;
import org.infinispan.server.resp.RespDecoder;

/** A command that a client sent. */
record Asked(String name, List<byte[]> arguments) {
    private static final Method COMMAND = method("getCommand");
    private static final Method ARGUMENTS = method("getArguments");
    private static final Set<String> POPS = Set.of("ZPOPMIN", "ZPOPMAX");

    @SuppressWarnings("unchecked")
    static Asked of(Object decoder) {
        try {
            RespCommand command = (RespCommand) COMMAND.invoke(decoder);
            return new Asked(command == null ? "" : command.getName(),
                    (List<byte[]>) ARGUMENTS.invoke(decoder));
        } catch (ReflectiveOperationException changed) {
            throw changed(changed);
        }
    }

    /** Those that are answered by as many messages as they name channels. */
    boolean isOfSubscriptions() {
        return name.endsWith("SUBSCRIBE");
    }

    boolean isLast() {
        return name.equals("QUIT");
    }

    /** Whether RESP 3 has pairs where RESP 2 has one after the other. */
    boolean wantsPairs() {
        if (POPS.contains(name)) {
            return true;
        }
        if (!name.startsWith("Z") && !name.equals("HRANDFIELD")) {
            return false;
        }
        return arguments.stream()
                .map(argument -> new String(argument, StandardCharsets.ISO_8859_1))
                .anyMatch(argument -> argument.equalsIgnoreCase("WITHSCORES")
                        || argument.equalsIgnoreCase("WITHVALUES"));
    }

    /** The decoder shows them to its own package. */
    private static Method method(String name) {
        try {
            Method method = RespDecoder.class.getDeclaredMethod(name);
            method.setAccessible(true);
            return method;
        } catch (ReflectiveOperationException changed) {
            throw changed(changed);
        }
    }

    private static IllegalStateException changed(ReflectiveOperationException failure) {
        return new IllegalStateException("Infinispan's RESP decoder of this version shows its"
                + " commands elsewhere; expected that of 16.0", failure);
    }
}
