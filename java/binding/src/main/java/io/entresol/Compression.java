package io.entresol;

/** How values are compressed before they are written. */
public enum Compression {
    /** As they are. */
    NONE,
    /** Fast, modest. */
    LZ4,
    /** Slower, smaller. */
    ZSTD
}
