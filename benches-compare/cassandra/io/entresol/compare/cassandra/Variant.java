package io.entresol.compare.cassandra;

import java.util.List;
import java.util.Locale;

/** A node of the comparison: what its configuration has beside that of the others. */
enum Variant {
    /** Tables on flash, as the launcher configures a node. */
    ENTRESOL("", "concurrent_reads: 64\nconcurrent_writes: 64\n", Yaml.MEMTABLE, true,
            " AND memtable = 'entresol'"),
    /** Cassandra's conf/cassandra.yaml. */
    DEFAULTS("""
            memtable:
              configurations:
                default:
                  class_name: SkipListMemtable
            """, "concurrent_reads: 32\nconcurrent_writes: 32\n", 0, false, ""),
    /** Cassandra's conf/cassandra_latest.yaml. */
    LATEST(Yaml.LATEST, "concurrent_reads: 32\nconcurrent_writes: 32\n", Yaml.MEMTABLE,
            false, ""),
    /**
     * The latest, with what helps random reads of small rows beyond memory: chunks of one page,
     * which are cached decompressed in all memory beside the heap, and reads without mapped files,
     * for which the kernel would read ahead.
     */
    TUNED(Yaml.LATEST + """
            disk_access_mode: standard
            file_cache_enabled: true
            file_cache_size: ${rows_memory}
            """, "concurrent_reads: 64\nconcurrent_writes: 64\n", Yaml.MEMTABLE, true,
            " AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"),
    /** Rows in the heap, and one read of a page of the device for each that is read. */
    FLOOR("""
            memtable_heap_space: 1024MiB
            memtable_cleanup_threshold: 0.9
            memtable:
              configurations:
                default:
                  class_name: SkipListMemtable
                floor:
                  class_name: io.entresol.compare.cassandra.FloorMemtable
                  parameters:
                    file: ${store}
            """, "concurrent_reads: 64\nconcurrent_writes: 64\n", Yaml.MEMTABLE, true,
            " AND memtable = 'floor'");

    private final String yaml;
    private final String threads;
    /**
     * Bytes of memory outside of the heap that come and go with changes. Entresol reads rows past
     * the page cache, so they are of no use to its reads.
     */
    final long memtable;
    /** Whether the rows' part of memory is the process's own, not the page cache. */
    final boolean hasCache;
    final String table;

    Variant(String yaml, String threads, long memtable, boolean hasCache, String table) {
        this.yaml = yaml;
        this.threads = threads;
        this.memtable = memtable;
        this.hasCache = hasCache;
        this.table = table;
    }

    boolean isStock() {
        return this != ENTRESOL && this != FLOOR;
    }

    /** Whether it plays a phase, beside those that change the rows for a later one. */
    boolean plays(String phase) {
        return this != FLOOR || !List.of("mixed", "overwrite", "fixed").contains(phase);
    }

    String label() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** The configuration: the launcher's, with these lines in place of its own. */
    String yaml(String launchers) {
        String all = launchers.replaceAll("(?m)^concurrent_(reads|writes):.*\n", "") + threads;
        return this != ENTRESOL ? all.replaceAll("(?s)\nmemtable:.*?\n(?=\\S)", "\n") + yaml
                : all.replaceAll("(?m)^( *)store_memory:.*$", "$0\n$1pending_memory: 25%");
    }

    /** What several share. */
    private static final class Yaml {
        static final long MEMTABLE = 48 << 20;
        static final String LATEST = """
                memtable:
                  configurations:
                    default:
                      class_name: TrieMemtable
                memtable_allocation_type: offheap_objects
                key_cache_size: 0MiB
                commitlog_disk_access_mode: auto
                trickle_fsync: true
                trickle_fsync_interval: 10240KiB
                sstable:
                  selected_format: bti
                default_compaction:
                  class_name: UnifiedCompactionStrategy
                  parameters:
                    scaling_parameters: T4
                    max_sstables_to_compact: 64
                    target_sstable_size: 1GiB
                    sstable_growth: 0.3333333333333333
                    min_sstable_size: 100MiB
                uuid_sstable_identifiers_enabled: true
                storage_compatibility_mode: NONE
                """;
    }
}
