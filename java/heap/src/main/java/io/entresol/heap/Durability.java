package io.entresol.heap;

/** When a commit returns, relative to when it is on the medium. */
public enum Durability {
    /** What the heap was opened with. */
    DEFAULT,
    /** On the medium when the commit returns. */
    SYNC,
    /** As SYNC; commits of several threads wait for each other to share a sync. */
    GROUP,
    /** In the file soon after: survives the end of the process, not a loss of power. */
    BUFFERED,
    /** In memory only until {@link AnyHeap#sync} or close. */
    NONE;

    /** As the native library wants it. */
    int code() {
        return ordinal();
    }
}
