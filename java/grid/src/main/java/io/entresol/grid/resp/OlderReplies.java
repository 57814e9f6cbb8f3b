package io.entresol.grid.resp;

import io.netty.buffer.ByteBuf;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Writes replies of RESP 3 in the form of RESP 2: maps, sets and pushes as arrays, nulls and
 * fractions as strings, and pairs one after the other in replies whose clients expect that. It
 * takes the bytes as they come; a reply may be cut anywhere.
 */
final class OlderReplies {
    private static final byte[] END = {'\r', '\n'};
    private static final int TYPE_OF_VERBATIM = "txt:".length();
    private static final String VERSION = "proto";

    private final ByteArrayOutputStream line = new ByteArrayOutputStream();
    /** Bytes of a string, with its end, that are still to come. */
    private long copied;
    private int skipped;
    /** Whether the next number is the version that HELLO tells, and the string before it. */
    private boolean hello;
    private final ByteArrayOutputStream string = new ByteArrayOutputStream();

    /** Of each command without its reply whether that has pairs. */
    private final Deque<Boolean> pairs = new ArrayDeque<>();
    /** Of each array that has begun how many elements are still to come. */
    private final Deque<long[]> arrays = new ArrayDeque<>();
    /** Whether the reply that has begun may have pairs, and, below zero if not, of how many. */
    private boolean mayHavePairs;
    private long held = -1;

    /** A command has been read; a reply will come for it. */
    void expect(boolean withPairs) {
        pairs.addLast(withPairs);
    }

    /** Replies that were expected will not come by here. */
    void forget() {
        pairs.clear();
    }

    /** The next reply is that of HELLO 2, which Infinispan took for HELLO 3. */
    void expectHello() {
        hello = true;
    }

    void translate(ByteBuf from, ByteBuf to) {
        while (from.isReadable()) {
            if (skipped > 0) {
                from.skipBytes(1);
                skipped--;
            } else if (copied > 0) {
                int now = (int) Math.min(copied, from.readableBytes());
                if (hello) {
                    byte[] seen = new byte[now];
                    from.getBytes(from.readerIndex(), seen);
                    string.writeBytes(seen);
                }
                to.writeBytes(from, now);
                copied -= now;
                if (copied == 0) {
                    ended();
                }
            } else {
                byte next = from.readByte();
                if (next != '\n') {
                    line.write(next);
                } else {
                    String whole = line.toString(StandardCharsets.ISO_8859_1);
                    line.reset();
                    line(whole.substring(0, whole.length() - 1), to);
                }
            }
        }
    }

    private static void write(String text, ByteBuf to) {
        to.writeBytes(text.getBytes(StandardCharsets.ISO_8859_1));
        to.writeBytes(END);
    }

    private static void writeString(String text, ByteBuf to) {
        write("$" + text.length(), to);
        write(text, to);
    }

    private void line(String line, ByteBuf to) {
        String rest = line.substring(1);
        char type = line.charAt(0);
        if (arrays.isEmpty() && held < 0 && type != '>') {
            mayHavePairs = !pairs.isEmpty() && pairs.removeFirst();
        }
        switch (type) {
            case '%' -> array(2 * Long.parseLong(rest), to);
            case '*', '~', '>' -> array(Long.parseLong(rest), to);
            default -> {
                beginHeld(false, to);
                element(type, rest, line, to);
            }
        }
    }

    private void array(long elements, ByteBuf to) {
        boolean pair = elements == 2;
        if (arrays.isEmpty() && held < 0 && mayHavePairs && elements > 0) {
            // Told once it is known whether they are pairs.
            held = elements;
            return;
        }
        beginHeld(pair, to);
        if (mayHavePairs && pair && arrays.size() == 1) {
            return;
        }
        write("*" + elements, to);
        if (elements > 0) {
            arrays.push(new long[] {elements});
        } else {
            ended();
        }
    }

    /** The outermost array, whose first element is known now. */
    private void beginHeld(boolean ofPairs, ByteBuf to) {
        if (held >= 0) {
            mayHavePairs = ofPairs;
            long elements = ofPairs ? 2 * held : held;
            held = -1;
            write("*" + elements, to);
            arrays.push(new long[] {elements});
        }
    }

    /** An element is whole, and so is each array whose last one it is. */
    private void ended() {
        while (!arrays.isEmpty() && --arrays.peek()[0] == 0) {
            arrays.pop();
        }
    }

    private void element(char type, String rest, String line, ByteBuf to) {
        switch (type) {
            case '_' -> write("$-1", to);
            // Infinispan writes 1 as 1.0, which nobody else does.
            case ',' -> writeString(rest.endsWith(".0")
                    ? rest.substring(0, rest.length() - 2) : rest, to);
            case '(' -> writeString(rest, to);
            case '#' -> write(rest.equals("t") ? ":1" : ":0", to);
            case '=' -> {
                copied = Long.parseLong(rest) - TYPE_OF_VERBATIM;
                write("$" + copied, to);
                copied += END.length;
                skipped = TYPE_OF_VERBATIM;
            }
            case '!' -> {
                to.writeByte('-');
                copied = Long.parseLong(rest) + END.length;
            }
            case '$' -> {
                write(line, to);
                long length = Long.parseLong(rest);
                copied = length < 0 ? 0 : length + END.length;
                string.reset();
            }
            default -> write(version(line), to);
        }
        if (copied == 0) {
            ended();
        }
    }

    private String version(String line) {
        if (hello && line.equals(":3")
                && string.toString(StandardCharsets.ISO_8859_1).startsWith(VERSION)) {
            hello = false;
            return ":2";
        }
        hello &= line.charAt(0) != '-';
        return line;
    }
}
