package io.entresol.grid.resp;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.group.ChannelGroup;
import java.lang.reflect.Field;
import java.util.Arrays;
import java.util.Collection;
import org.infinispan.server.core.ProtocolServer;
import org.infinispan.server.core.transport.NettyTransport;
import org.infinispan.server.resp.RespCommand;
import org.infinispan.server.resp.RespHandler;
import org.infinispan.server.resp.RespServer;
import org.infinispan.server.resp.commands.Commands;

/**
 * A front of Infinispan's RESP endpoint, so that present-day clients can use it: it adds commands
 * that they expect, and {@link Replies} at each connection to the port for RESP alone.
 */
public final class RespFront {
    private static final String REPLIES = "entresol-replies";

    private RespFront() {
    }

    /** Before any server starts. */
    public static void addCommands() {
        replace('C', new CLIENT());
        replace('H', new HELLO());
        replace('R', new RANDOMKEY());
        replace('U', new UNLINK());
    }

    private static void replace(char first, RespCommand command) {
        RespCommand[] all = Commands.ALL_COMMANDS[first - 'A'];
        for (int place = 0; place < all.length; place++) {
            if (all[place].getName().equals(command.getName())) {
                all[place] = command;
                return;
            }
        }
        RespCommand[] more = Arrays.copyOf(all, all.length + 1);
        more[all.length] = command;
        Commands.ALL_COMMANDS[first - 'A'] = more;
    }

    /** At connections to servers that have started. */
    public static void standBefore(Collection<? extends ProtocolServer> servers) {
        for (ProtocolServer server : servers) {
            NettyTransport transport =
                    server instanceof RespServer resp ? resp.getTransport() : null;
            if (transport != null) {
                for (Channel listening : listening(transport)) {
                    listening.pipeline().addFirst(new Accepting());
                }
                transport.getAcceptedChannels().forEach(
                        channel -> channel.eventLoop().execute(() -> place(channel)));
            }
        }
    }

    /** The transport tells nobody. */
    private static ChannelGroup listening(NettyTransport transport) {
        try {
            Field channels = NettyTransport.class.getDeclaredField("serverChannels");
            channels.setAccessible(true);
            return (ChannelGroup) channels.get(transport);
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException("Infinispan's transport of this version has its"
                    + " channels elsewhere; expected those of 16.0", changed);
        }
    }

    private static void place(Channel channel) {
        ChannelHandlerContext handler = channel.pipeline().context(RespHandler.class);
        if (handler != null && channel.pipeline().get(REPLIES) == null) {
            channel.pipeline().addBefore(handler.name(), REPLIES, new Replies());
        }
    }

    /** Sees each connection before Infinispan does. */
    private static final class Accepting extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            if (message instanceof Channel accepted) {
                accepted.pipeline().addLast(new Placing());
            }
            context.fireChannelRead(message);
        }
    }

    /** Once Infinispan's own handlers stand. */
    private static final class Placing extends ChannelInboundHandlerAdapter {
        @Override
        public void channelActive(ChannelHandlerContext context) {
            place(context.channel());
            context.fireChannelActive();
            context.pipeline().remove(this);
        }
    }
}
