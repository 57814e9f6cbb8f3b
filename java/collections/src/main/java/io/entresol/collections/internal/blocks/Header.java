package io.entresol.collections.internal.blocks;

import io.entresol.heap.MemoryAccessor;
import io.entresol.heap.Range;
import java.nio.charset.StandardCharsets;

/**
 * The beginning of the block of every collection, behind the header of persistent objects: five
 * words, of which a collection uses some, then the names of its codecs, each with its length (4
 * bytes) in front.
 */
public final class Header {
    /** The radix tree with the entries or chunks, or whose turn it is. */
    static final long ROOT_AT = 8;
    /** Number of elements. */
    static final long COUNT_AT = 16;
    /** The first node. */
    static final long FIRST_AT = 24;
    /** The last node. */
    static final long LAST_AT = 32;
    /** Seed of hashes. */
    static final long SEED_AT = 32;
    /** Number of changes that iterators take notice of. */
    static final long CHANGES_AT = 40;

    /** The words, as the table of types has them. */
    public static final String FIELDS =
            "root long, count long, first long, last or seed long, changes long, codecs names";

    private static final long NAMES_AT = 48;

    private Header() {
    }

    /** Bytes of a block with codecs of these names. */
    public static long bytes(String... names) {
        long bytes = NAMES_AT;
        for (String name : names) {
            bytes += Integer.BYTES + encoded(name).length;
        }
        return bytes;
    }

    public static void write(Range range, String... names) {
        long at = NAMES_AT;
        for (String name : names) {
            byte[] text = encoded(name);
            range.setInt(at, text.length);
            at += Integer.BYTES;
            if (text.length > 0) {
                range.copyFromArray(text, 0, at, text.length);
            }
            at += text.length;
        }
    }

    /** The names of {@code count} codecs. */
    public static String[] names(MemoryAccessor block, int count) {
        String[] names = new String[count];
        long at = NAMES_AT;
        for (int index = 0; index < count; index++) {
            byte[] text = new byte[block.getInt(at)];
            at += Integer.BYTES;
            if (text.length > 0) {
                block.copyToArray(at, text, 0, text.length);
            }
            at += text.length;
            names[index] = named(new String(text, StandardCharsets.UTF_8));
        }
        return names;
    }

    /** The codec that a name means: heaps have that of references to anything in two. */
    private static String named(String name) {
        return name.equals("reference ") ? "reference" : name;
    }

    private static byte[] encoded(String name) {
        return name.getBytes(StandardCharsets.UTF_8);
    }
}
