package io.entresol.jdbc.internal.plan;

import io.entresol.jdbc.internal.column.Column;
import io.entresol.jdbc.internal.column.ColumnType;
import io.entresol.jdbc.internal.column.Keys;
import io.entresol.jdbc.internal.rows.CacheRows;
import io.entresol.jdbc.internal.run.Change;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.apache.calcite.DataContext;
import org.apache.calcite.linq4j.Enumerable;
import org.apache.calcite.linq4j.Enumerator;
import org.apache.calcite.linq4j.Linq4j;
import org.apache.calcite.rel.core.TableModify.Operation;
import org.infinispan.AdvancedCache;
import org.infinispan.container.entries.CacheEntry;
import org.infinispan.container.versioning.VersionGenerator;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.factories.KnownComponentNames;
import org.infinispan.metadata.EmbeddedMetadata;
import org.infinispan.metadata.Metadata;

/**
 * The carrying out of INSERT, UPDATE and DELETE. Each row is a change of its own: one that fails
 * ends the statement, and those before it stay. An UPDATE or DELETE never overwrites a change that
 * somebody else made since the row was read.
 *
 * @param table the table to change
 * @param operation the kind of change
 * @param updated names of the columns that an UPDATE sets
 * @param readsItself whether the rows may come from the cache that is changed
 */
record CacheChange(CacheTable table, Operation operation, List<String> updated,
        boolean readsItself) implements Change {
    @Override
    public Enumerable<Object> carryOut(Enumerable<?> rows, DataContext run) {
        table.requireChanges();
        CacheRows cache = table.rows();
        List<Column> changed = updated.stream().map(this::updatable).toList();
        // All rows are read before the first is changed: a change must not meet its own result.
        List<Object[]> read = readsItself ? all(rows) : null;
        Window window = new Window();
        try (Enumerator<?> source = read == null ? rows.enumerator()
                : Linq4j.enumerator(read)) {
            while (!window.hasFailed() && source.moveNext()) {
                window.add(change(cache, cells(source.current()), changed));
            }
        } catch (RuntimeException | Error failure) {
            window.fail(failure);
        }
        return Linq4j.singletonEnumerable(window.finished());
    }

    /** What keeps the row from being changed is what it ends with, or null. */
    private CompletableFuture<String> change(CacheRows cache, Object[] row,
            List<Column> changed) {
        return switch (operation) {
            case INSERT -> insert(cache, row);
            case UPDATE -> update(cache, row, changed);
            case DELETE -> delete(cache, row);
            default -> throw new UnsupportedOperationException(operation
                    + " is not there; there are INSERT, UPDATE and DELETE");
        };
    }

    /** Changes that are under way; none is any more when the statement ends, however it does. */
    private static final class Window {
        private static final int SIZE = 256;

        private final List<CompletableFuture<String>> underWay = new ArrayList<>();
        private long done;
        /** Why the first change that was not made was not; null: all were. */
        private String mistake;
        private Throwable cause;

        void add(CompletableFuture<String> change) {
            underWay.add(change);
            if (underWay.size() == SIZE) {
                settle();
            }
        }

        boolean hasFailed() {
            return mistake != null;
        }

        void fail(Throwable failure) {
            if (mistake == null) {
                mistake = failure.getMessage() == null ? failure.toString() : failure.getMessage();
                cause = failure;
            }
        }

        /** How many rows are changed, if all are that should be. */
        long finished() {
            settle();
            if (mistake != null) {
                throw new IllegalStateException(mistake + "; " + done + " other rows are changed",
                        cause);
            }
            return done;
        }

        private void settle() {
            for (CompletableFuture<String> each : underWay) {
                try {
                    String refused = each.join();
                    if (refused == null) {
                        done++;
                    } else if (mistake == null) {
                        mistake = refused;
                    }
                } catch (CompletionException failure) {
                    fail(failure.getCause());
                } catch (CancellationException failure) {
                    fail(failure);
                }
            }
            underWay.clear();
        }
    }

    private static CompletableFuture<String> insert(CacheRows cache, Object[] row) {
        byte[] key = cache.keys().stored(row[0]);
        byte[] value = cache.messages().made(row);
        return cache.cache().putIfAbsentAsync(key, value)
                .thenApply(old -> old == null ? null : "key " + row[0] + " is there already");
    }

    private CompletableFuture<String> update(CacheRows cache, Object[] row,
            List<Column> changed) {
        int columns = cache.columns().size();
        Object[] cells = Arrays.copyOfRange(row, columns, row.length);
        return ifUnchanged(cache, row, (key, old, entry) -> cache.cache().replaceAsync(key, old,
                cache.messages().changed(old, changed, cells), kept(cache.cache(), entry)));
    }

    private CompletableFuture<String> delete(CacheRows cache, Object[] row) {
        return ifUnchanged(cache, row, (key, old, entry) -> cache.cache().removeAsync(key, old));
    }

    private interface Conditional {
        CompletableFuture<Boolean> change(Object key, byte[] old, CacheEntry<?, ?> entry);
    }

    private static CompletableFuture<String> ifUnchanged(CacheRows cache, Object[] row,
            Conditional change) {
        byte[] key = cache.keys().stored(row[0]);
        AdvancedCache<Object, Object> entries = cache.cache();
        return entries.getCacheEntryAsync(key).thenCompose(found -> {
            byte[] old = found == null ? null : Keys.bytes(found.getValue());
            Object[] now = old == null ? null : cache.messages().cells(old);
            boolean same = now != null;
            for (int place = 1; same && place < cache.columns().size(); place++) {
                same = Objects.equals(now[place], row[place]);
            }
            return same ? change.change(key, old, found)
                    : CompletableFuture.completedFuture(false);
        }).thenApply(done -> done ? null : "key " + row[0] + " was changed by somebody else since "
                + "the statement read it; repeat the statement");
    }

    private static List<Object[]> all(Enumerable<?> rows) {
        List<Object[]> all = new ArrayList<>();
        try (Enumerator<?> source = rows.enumerator()) {
            while (source.moveNext()) {
                all.add(cells(source.current()));
            }
        }
        return all;
    }

    private static Object[] cells(Object row) {
        return row instanceof Object[] cells ? cells : new Object[] {row};
    }

    private Column updatable(String name) {
        Column column = table.columns().stream().filter(each -> each.name().equals(name))
                .findFirst().orElseThrow();
        if (column.isKey()) {
            throw new IllegalArgumentException("column " + name + " is the key of the entries, "
                    + "which cannot be updated; insert another entry and delete this one");
        } else if (column.type() == ColumnType.DOCUMENT) {
            throw new IllegalArgumentException("column " + name + " shows a part of the value as "
                    + "JSON, which can be read only");
        }
        return column;
    }

    /**
     * What an entry keeps whose value is replaced: it ends when it would have. Who compares
     * versions, as Hot Rod's clients do, sees that it is another one.
     */
    private static Metadata kept(AdvancedCache<?, ?> cache, CacheEntry<?, ?> entry) {
        ComponentRegistry registry = ComponentRegistry.of(cache);
        EmbeddedMetadata.Builder kept = new EmbeddedMetadata.Builder();
        long lifespan = entry.getLifespan();
        if (lifespan >= 0) {
            long end = entry.getCreated() + lifespan;
            // One that ends just now is replaced by one that has as good as ended.
            lifespan = Math.max(1, end - registry.getTimeService().wallClockTime());
        }
        // What is left out would be the cache's own.
        kept.lifespan(lifespan, TimeUnit.MILLISECONDS);
        kept.maxIdle(entry.getMaxIdle(), TimeUnit.MILLISECONDS);
        if (entry.getMetadata() != null && entry.getMetadata().version() != null) {
            kept.version(registry.getComponent(VersionGenerator.class,
                    KnownComponentNames.HOT_ROD_VERSION_GENERATOR).generateNew());
        }
        return kept.build();
    }
}
