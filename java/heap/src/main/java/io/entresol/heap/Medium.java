package io.entresol.heap;

/** How a heap's file is written. */
public enum Medium {
    /**
     * By stores where the file is byte-persistent memory or memory of the system (tmpfs), else by
     * pages.
     */
    AUTO,
    /** By system calls and syncs. */
    PAGES,
    /**
     * By stores and fences, whatever the file is. On a file that is not byte-persistent memory this
     * survives the end of the process and nothing else.
     */
    BYTES
}
