package io.entresol.infinispan.recovery;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.persistence.PersistenceUtil;

/**
 * A file that says that this node withdrew from a cache: the entries in its store do not count,
 * whichever program opens it next. The file is beside the stores, not in one, because the failed
 * store may take no write.
 */
public final class WithdrawalMark {
    /** Its name, in the folder of the cache. */
    private static final String NAME = "entresol.withdrawn";

    /** Null where a node has no folder that lasts. */
    private final Path file;

    private WithdrawalMark(Path file) {
        this.file = file;
    }

    /** That of a cache, in the global state; without one beside the store's own file, if any. */
    public static WithdrawalMark of(GlobalConfiguration global, String cache, Path store) {
        if (global.globalState().enabled()) {
            return new WithdrawalMark(PersistenceUtil.getQualifiedLocation(
                    global, null, cache, "entresol").resolve(NAME));
        }
        return new WithdrawalMark(store == null ? null : store.resolveSibling(NAME));
    }

    /** Why this node withdrew; empty if it did not. */
    public Optional<String> read() {
        try {
            return file == null || !Files.exists(file) ? Optional.empty()
                    : Optional.of(Files.readString(file).strip());
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot read " + file, failure);
        }
    }

    /** Once the entries that do not count are gone. */
    public void remove() {
        try {
            if (file != null) {
                SyncedFile.remove(file);
            }
        } catch (IOException failure) {
            throw new UncheckedIOException("cannot remove " + file, failure);
        }
    }

    /** Makes it, so that it survives power loss; throws if it cannot. */
    void make(String why) throws IOException {
        if (file == null) {
            throw new IOException("this node has no global state to note it in");
        }
        SyncedFile.replace(file, why + "\n");
    }
}
