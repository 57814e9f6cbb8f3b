package io.entresol.grid.resp;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** Replies of RESP 3 as RESP 2 has them, wherever they are cut. */
class OlderRepliesTest {
    @Test
    void typesThatRespTwoLacksAreThoseThatItHas() {
        becomes("_\r\n", "$-1\r\n");
        becomes("%1\r\n$1\r\na\r\n_\r\n", "*2\r\n$1\r\na\r\n$-1\r\n");
        becomes("~2\r\n:1\r\n#t\r\n", "*2\r\n:1\r\n:1\r\n");
        becomes(",1.5\r\n,inf\r\n", "$3\r\n1.5\r\n$3\r\ninf\r\n");
        becomes("=9\r\ntxt:hello\r\n", "$5\r\nhello\r\n");
        becomes(">2\r\n$1\r\nm\r\n*0\r\n", "*2\r\n$1\r\nm\r\n*0\r\n");
        becomes("!5\r\nERR x\r\n", "-ERR x\r\n");
    }

    /** As `ZRANGE … WITHSCORES` has them. */
    @Test
    void pairsFollowEachOtherWhereTheyAreExpected() {
        String pairs = "*2\r\n*2\r\n$1\r\na\r\n,1\r\n*2\r\n$1\r\nb\r\n,2\r\n";
        String others = "*2\r\n$1\r\na\r\n,1\r\n";
        OlderReplies replies = new OlderReplies();
        replies.expect(true);
        replies.expect(false);
        replies.expect(true);
        assertEquals("*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n",
                translated(replies, pairs, 1));
        assertEquals("*1\r\n*2\r\n:1\r\n:2\r\n",
                translated(replies, "*1\r\n*2\r\n:1\r\n:2\r\n", 3));
        // ZPOPMIN of one entry has it without an array of its own.
        assertEquals("*2\r\n$1\r\na\r\n$1\r\n1\r\n", translated(replies, others, 2));
    }

    @Test
    void helloOfVersionTwoSaysSo() {
        OlderReplies replies = new OlderReplies();
        replies.expectHello();
        assertEquals("*4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:3\r\n",
                translated(replies, "%2\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:3\r\n", 1));
    }

    private static void becomes(String newer, String older) {
        for (int bytes = 1; bytes <= newer.length(); bytes++) {
            assertEquals(older, translated(new OlderReplies(), newer, bytes));
        }
    }

    /** Of replies that come in pieces. */
    private static String translated(OlderReplies replies, String newer, int bytes) {
        ByteBuf from = Unpooled.copiedBuffer(newer, StandardCharsets.ISO_8859_1);
        ByteBuf to = Unpooled.buffer();
        while (from.isReadable()) {
            replies.translate(from.readSlice(Math.min(bytes, from.readableBytes())), to);
        }
        return to.toString(StandardCharsets.ISO_8859_1);
    }
}
