package io.entresol.infinispan;

import java.util.ArrayList;
import java.util.List;

/** The command that a thread carries out, so that the loads of a read end with the read. */
final class Reader {
    private static final ThreadLocal<Reader> READERS = ThreadLocal.withInitial(Reader::new);
    /** A read that has loaded nothing yet: most of them find all in memory. */
    private static final Read NOTHING = new Read();

    /** Null where the thread is not about a read, but, say, about a write of one's listener. */
    private Read current;
    /** Those that have loaded something, the outer ones too. */
    private final List<Read> loading = new ArrayList<>(1);

    /** What a read has loaded, of whatever cache's store. */
    static final class Read {
        private final List<Loads.Load> loaded = new ArrayList<>(1);

        /** All of it is in memory, or will never be. */
        void end() {
            loaded.forEach(Loads.Load::end);
        }

        private boolean isOf(Loads loads) {
            for (Loads.Load load : loaded) {
                if (load.isOf(loads)) {
                    return true;
                }
            }
            return false;
        }
    }

    static Reader ofThread() {
        return READERS.get();
    }

    /** Begins a command; what the thread was about before. */
    Read enter(boolean reads) {
        Read outer = current;
        current = reads ? NOTHING : null;
        return outer;
    }

    /** Goes back to what the thread was about; what the command loaded so far, null if nothing. */
    Read leave(Read outer) {
        Read read = current;
        current = outer;
        if (read == null || read == NOTHING) {
            return null;
        }
        loading.remove(read);
        return read;
    }

    /** Leaves a load to the read that began it; false if none did. */
    boolean takes(Loads.Load load) {
        if (current == null) {
            return false;
        }
        if (current == NOTHING) {
            current = new Read();
            loading.add(current);
        }
        current.loaded.add(load);
        return true;
    }

    /** Whether it is about a read that has loaded from that store: it must not wait for itself. */
    boolean isLoading(Loads loads) {
        for (Read read : loading) {
            if (read.isOf(loads)) {
                return true;
            }
        }
        return false;
    }
}
