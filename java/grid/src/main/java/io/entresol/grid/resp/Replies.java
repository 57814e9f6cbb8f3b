package io.entresol.grid.resp;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.nio.charset.StandardCharsets;
import org.infinispan.server.resp.ByteBufPool;
import org.infinispan.server.resp.RespRequestHandler;

/**
 * The replies of a connection: in RESP 2 until its client says HELLO 3, and one for each command.
 * Infinispan speaks RESP 3 to every client, and gives no reply to a command that it does not know.
 */
final class Replies extends ChannelDuplexHandler {
    private static final int NEWER = 3;
    private static final byte[] NONE = ("-ERR no answer: unknown or wrong arguments of this command\r\n")
            .getBytes(StandardCharsets.US_ASCII);

    private static final byte[] OK = "+OK\r\n".getBytes(StandardCharsets.US_ASCII);

    private final OlderReplies older = new OlderReplies();
    private int version = 2;
    /** How often room for a reply was asked for. */
    private long asked;
    private ByteBufPool pool;
    private boolean leaves;
    private boolean goesOn;
    private long askedBefore;

    int version() {
        return version;
    }

    void saysHello(int wanted) {
        version = wanted;
        if (wanted < NEWER) {
            older.expectHello();
        } else {
            older.forget();
        }
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        if (pool == null) {
            ByteBufPool own = context.channel()
                    .attr(RespRequestHandler.BYTE_BUF_POOL_ATTRIBUTE_KEY).get();
            pool = own;
            context.channel().attr(RespRequestHandler.BYTE_BUF_POOL_ATTRIBUTE_KEY)
                    .set(bytes -> {
                        asked++;
                        return own.acquire(bytes);
                    });
        }
        Asked command = Asked.of(message);
        if (version < NEWER) {
            if (!command.isOfSubscriptions()) {
                older.expect(command.wantsPairs());
            }
        }
        if (command.isLast()) {
            pool.acquire(OK.length).writeBytes(OK);
            leaves = true;
            return;
        }
        long before = asked;
        context.fireChannelRead(message);
        // While a command goes on nothing is read.
        goesOn = !context.channel().config().isAutoRead();
        askedBefore = before;
        if (!goesOn && asked == before && context.channel().isActive()) {
            pool.acquire(NONE.length).writeBytes(NONE);
        }
    }

    /** Also once a command that went on for some time is over. */
    @Override
    public void read(ChannelHandlerContext context) {
        if (goesOn && context.channel().config().isAutoRead()) {
            goesOn = false;
            if (asked == askedBefore && context.channel().isActive()) {
                write(context, context.alloc().buffer(NONE.length).writeBytes(NONE),
                        context.newPromise());
                context.flush();
            }
        }
        context.read();
    }

    /** Who says that it leaves is answered first. Infinispan closes the connection at once. */
    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        context.fireChannelReadComplete();
        if (leaves) {
            context.writeAndFlush(Unpooled.EMPTY_BUFFER)
                    .addListener(ChannelFutureListener.CLOSE);
        }
    }

    @Override
    public void write(ChannelHandlerContext context, Object message, ChannelPromise promise) {
        if (version >= NEWER || !(message instanceof ByteBuf replies)) {
            context.write(message, promise);
            return;
        }
        ByteBuf translated = context.alloc().buffer(replies.readableBytes() + 64);
        try {
            older.translate(replies, translated);
        } finally {
            replies.release();
        }
        context.write(translated, promise);
    }
}
