package io.entresol.grid.resp;

import io.netty.channel.ChannelHandlerContext;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ThreadLocalRandom;
import org.infinispan.AdvancedCache;
import org.infinispan.server.resp.Resp3Handler;
import org.infinispan.server.resp.RespRequestHandler;
import org.infinispan.server.resp.serialization.ResponseWriter;

/**
 * Replaces Infinispan's command of this name, which waits for the keys in the very thread that has
 * to bring them: with a cache on flash it would never answer, and the thread would never do another
 * task.
 */
final class RANDOMKEY extends org.infinispan.server.resp.commands.generic.RANDOMKEY {
    @Override
    public CompletionStage<RespRequestHandler> perform(Resp3Handler handler,
            ChannelHandlerContext context, List<byte[]> arguments) {
        AdvancedCache<byte[], byte[]> cache = handler.cache();
        return handler.stageToReturn(handler.getBlockingManager().supplyBlocking(
                () -> any(cache), "randomkey"), context, ResponseWriter.BULK_STRING_BYTES);
    }

    private static byte[] any(AdvancedCache<byte[], byte[]> cache) {
        int size = cache.size();
        return size == 0 ? null : cache.keySet().stream()
                .skip(ThreadLocalRandom.current().nextInt(size)).findFirst().orElse(null);
    }
}
