package io.entresol.grid.resp;

import io.netty.channel.ChannelHandlerContext;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import org.infinispan.server.resp.Resp3AuthHandler;
import org.infinispan.server.resp.RespRequestHandler;

/** Infinispan's command of this name, which knows version 3 only. */
final class HELLO extends org.infinispan.server.resp.commands.connection.HELLO {
    private static final byte[] NEWER = {'3'};

    @Override
    public CompletionStage<RespRequestHandler> perform(Resp3AuthHandler handler,
            ChannelHandlerContext context, List<byte[]> arguments) {
        Replies replies = context.pipeline().get(Replies.class);
        if (replies == null) {
            return super.perform(handler, context, arguments);
        }
        String version = arguments.isEmpty() ? null
                : new String(arguments.get(0), StandardCharsets.UTF_8);
        if (version != null && !version.equals("2") && !version.equals("3")) {
            return super.perform(handler, context, arguments);
        }
        // Those of commands that were sent ahead of this one are written already.
        replies.saysHello(version == null ? replies.version() : Integer.parseInt(version));
        List<byte[]> asked = new ArrayList<>(arguments);
        if (version == null) {
            asked.add(NEWER);
        } else {
            asked.set(0, NEWER);
        }
        return super.perform(handler, context, asked);
    }
}
