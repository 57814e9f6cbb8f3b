package io.entresol.grid.resp;

import io.netty.channel.ChannelHandlerContext;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import org.infinispan.server.resp.Resp3Handler;
import org.infinispan.server.resp.RespRequestHandler;

/**
 * Infinispan's command of this name, which gives no answer at all to a subcommand that it does not
 * know. Clients that send newer subcommands as they connect would wait for ever. The class has the
 * name of its command.
 */
final class CLIENT extends org.infinispan.server.resp.commands.connection.CLIENT {
    private static final Set<String> KNOWN = Set.of("CACHING", "UNPAUSE", "PAUSE", "NO-EVICT",
            "KILL", "NO-TOUCH", "GETREDIR", "UNBLOCK", "REPLY", "SETINFO", "SETNAME", "GETNAME",
            "ID", "INFO", "LIST", "TRACKING", "TRACKINGINFO");

    @Override
    public CompletionStage<RespRequestHandler> perform(Resp3Handler handler,
            ChannelHandlerContext context, List<byte[]> arguments) {
        String subcommand = new String(arguments.get(0), StandardCharsets.UTF_8);
        if (KNOWN.contains(subcommand.toUpperCase(Locale.ROOT))) {
            return super.perform(handler, context, arguments);
        }
        handler.writer().customError(
                "unknown subcommand '" + subcommand.replaceAll("[\r\n]", " ") + "'.");
        return handler.myStage();
    }
}
