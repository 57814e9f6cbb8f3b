package io.entresol.heap.engine;

/**
 * The native library by the Java Native Interface. Every function takes and gives longs: numbers,
 * addresses, and addresses of texts. A negative result is a failure: its negation is the address of
 * a text, which {@link Failure#of} reads and releases.
 *
 * <p>These declarations are the list of all functions. From them the build writes {@link Native},
 * {@link NativeStore}, {@link NativeTables}, {@link NativeConsole} and {@link NativeBlocks}, which
 * call a function by JNI, or from Java 22 on by the Foreign Function and Memory API.
 */
final class Jni {
    static {
        Library.load();
    }

    private Jni() {
    }

    /** Creates a heap, encrypted unless {@code key} is 0; its address. */
    static native long heapCreate(long path, long pathLength, long bytes, long limit, long label,
            long durability, long argument, long medium, long key);

    /** Opens a heap; its address. Flag 1: read only; flag 2: whatever the label. */
    static native long heapOpen(long path, long pathLength, long label, long flags,
            long durability, long argument, long medium, long key);

    /** Closes a heap, whose memory is zeros from now on. */
    static native long heapClose(long heap);

    /** Releases a heap's address, and its memory once nothing of it is left. */
    static native long heapRelease(long heap);

    /** Everything committed is durable on return. */
    static native long heapSync(long heap);

    /** Address of handle 0. */
    static native long heapBase(long heap);

    /** Bytes that handles may lie in now. */
    static native long heapBytes(long heap);

    /** Bytes that the heap may grow to. */
    static native long heapLimit(long heap);

    /** The lowest handle there can be. */
    static native long heapFirst(long heap);

    /** The root. */
    static native long heapRoot(long heap);

    /** Sets the root in a transaction of its own. */
    static native long heapSetRoot(long heap, long root);

    /** Grows the heap to `bytes`. */
    static native long heapGrow(long heap, long bytes);

    /** Gives free pages at the end back to the file system; bytes left. */
    static native long heapShrink(long heap);

    /** Allocates in a transaction of its own; `header`, if not 0, goes to the first 8 bytes. */
    static native long heapAllocate(long heap, long bytes, long header, long durability);

    /** Frees in a transaction of its own. */
    static native long heapFree(long heap, long handle, long durability);

    /** 1 if `handle` is a live allocation, else 0. */
    static native long heapIsLive(long heap, long handle);

    /** Bytes of the allocation, 0 if it is not live. */
    static native long heapUsable(long heap, long handle);

    /** 1 if allocations of `bytes` now have a size class of their own. */
    static native long heapRegister(long heap, long bytes);

    /** Makes a range durable. */
    static native long heapPersist(long heap, long offset, long length, long durability);

    /** Makes every page durable that was ever stored to. */
    static native long heapPersistDirty(long heap);

    /** Writes up to `count` figures to `out`; how many there are. */
    static native long heapStatistics(long heap, long out, long count);

    /** Text: what the medium holds and when. */
    static native long heapDurability(long heap);

    /** Text: what is wrong with the heap; 0 if nothing is. */
    static native long heapCheck(long heap);

    /** Copies the committed heap to a new file. */
    static native long heapBackup(long heap, long path, long pathLength);

    /** Keeps freed blocks from being used again; the guard's address. */
    static native long heapGuard(long heap);

    /** Releases a guard. */
    static native long guardRelease(long guard);

    /** Begins a transaction; its address. */
    static native long transactionBegin(long heap);

    /** Allocates; the handle. */
    static native long transactionAllocate(long transaction, long bytes);

    /** Frees. */
    static native long transactionFree(long transaction, long handle);

    /** Sets the root. */
    static native long transactionSetRoot(long transaction, long root);

    /** The number of a savepoint. */
    static native long transactionSavepoint(long transaction);

    /** Rolls allocations and frees back to a savepoint. */
    static native long transactionRollback(long transaction, long savepoint);

    /** Commits pairs of offset and length, and a transaction if there is one (else 0). */
    static native long transactionCommit(long heap, long transaction, long ranges, long count,
            long durability);

    /** Aborts. */
    static native long transactionAbort(long transaction);

    /** Allocates native memory; its address. */
    static native long bufferAllocate(long bytes);

    /** Frees native memory of that size. */
    static native long bufferFree(long address, long bytes);

    /** Releases a text. */
    static native long textRelease(long text);

    /** Makes an ordered map; its handle. */
    static native long treeCreate(long transaction);

    /** Opens an ordered map; its address. */
    static native long treeOpen(long heap, long handle);

    /** Releases the address of an ordered map. */
    static native long treeClose(long tree);

    /** How many entries. */
    static native long treeEntries(long tree);

    /** Address of the count that is odd while words of the map change. */
    static native long treeVersion(long tree);

    /** 1 if there is the key, with its value at `out`; else 0. */
    static native long treeGet(long tree, long key, long length, long out);

    /** Puts an entry, alone if transaction is 0; as treeGet for the value before. */
    static native long treePut(long tree, long transaction, long key, long length, long value,
            long out);

    /** Removes an entry; as treePut. */
    static native long treeRemove(long tree, long transaction, long key, long length, long out);

    /** Makes other transactions that change the map wait until this one ends. */
    static native long treeHold(long tree, long transaction);

    /** Removes all entries. */
    static native long treeClear(long tree, long transaction);

    /** Frees the map with all entries. */
    static native long treeDestroy(long tree, long transaction);

    /** Moves the upper half to a new map; its handle, 0 if there is none. */
    static native long treeSplit(long tree, long transaction);

    /** A view of the entries between two bounds; its address. */
    static native long treeRange(long tree, long transaction, long bounds);

    /** Writes as many of the next entries as fit to `out`; how many. */
    static native long rangeNext(long range, long backwards, long out, long bytes);

    /** Releases a view. */
    static native long rangeClose(long range);

    /** The live blocks of a heap; the list's address. */
    static native long blocksOfHeap(long heap);

    /** The blocks of a radix tree, which must not change meanwhile; the list's address. */
    static native long blocksOfTree(long heap, long handle);

    /** Puts the next handles to {@code out}, {@code count} at most; how many, 0 at the end. */
    static native long blocksNext(long blocks, long out, long count);

    /** Releases a list. */
    static native long blocksClose(long blocks);

    /** Maps a file, which is made with `bytes` unless that is 0; the pool's address. */
    static native long poolOpen(long path, long pathLength, long bytes);

    /** Address of offset 0. */
    static native long poolBase(long pool);

    /** Bytes of the pool. */
    static native long poolBytes(long pool);

    /** Makes a range durable. */
    static native long poolFlush(long pool, long offset, long length);

    /** Lets the file go; the memory is zeros from now on. */
    static native long poolClose(long pool);

    /** Releases a pool's memory. */
    static native long poolRelease(long pool);

    /** Opens a store, or makes it, as lines of {@code name=value} say; its address. */
    static native long storeOpen(long options, long length);

    /** Begins requests; how many were answered at once, which the first word of each tells. */
    static native long storeSubmit(long store, long requests, long count);

    /** Waits for outcomes; how many, 0 once closed. Address and bytes go to {@code out}. */
    static native long storeReap(long store, long out);

    /** Begins a job: 1 a sync, 2 dropping a partition, 3 dropping a space. */
    static native long storeBegin(long store, long token, long job, long argument);

    /** Entries of a partition, or of the whole space if {@code whole} is not 0. */
    static native long storeCount(long store, long place, long whole);

    /** Text: figures as JSON. */
    static native long storeStatistics(long store);

    /** Text: about {@code groups} groups of segments as JSON; 0 while the device is waited for. */
    static native long storeSegments(long store, long groups);

    /** Closes a store once all that was begun is finished. */
    static native long storeClose(long store);

    /** Releases a store's address. */
    static native long storeRelease(long store);

    /** Removes write buffers of stores whose files in the folder are gone; how many files. */
    static native long storeSweep(long folder, long length);

    /** A scan of so many partitions, of all if {@code count} is below 0; its address. */
    static native long scanOpen(long store, long space, long partitions, long count, long keysOnly);

    /** Begins reading about {@code limit} entries. */
    static native long scanNext(long store, long scan, long token, long limit, long now);

    /** Releases a scan. */
    static native long scanClose(long scan);

    /** The ordered table of a name; its address. */
    static native long tableOpen(long store, long name, long length);

    /** The same, of a table that keeps counts. */
    static native long tableOpenCounted(long store, long name, long length);

    /** How many rows there are between two keys; a length of 0 is no bound. */
    static native long tableCount(
            long table, long low, long lowLength, long high, long highLength);

    /** About how many rows a table has in a range, as five words say. */
    static native long tableEstimate(long table, long words);

    /** Releases the address of a table. */
    static native long tableClose(long table);

    /** Bytes of the row of a key, 0 if there is none; at {@code out} if they fit. */
    static native long tableGet(long table, long key, long length, long out, long capacity);

    /** Gets several rows of any tables, as five words say; how many there are. */
    static native long tablesGet(long store, long words);

    /** A page of rows, as ten words say; how many. */
    static native long tableScan(long table, long words);

    /** Removes all rows of a table. */
    static native long tableDrop(long table);

    /** Says which function folds the rows of a table. Flag 1: rows without parts, too. */
    static native long tableMerge(long table, long function, long flags);

    /** Writes a batch, as five words say; the number of its last change, 0 if it was refused. */
    static native long tablesWrite(long store, long words);

    /** Answers a question of merges and waits for the next; how many rows, 0 once closed. */
    static native long tablesFold(long store, long words);

    /** Text: why the last sweep of merges let changes wait; 0 if it let none. */
    static native long tablesHeldBack(long store);

    /** Text: the figures of each table in memory, as a JSON array. */
    static native long tablesFigures(long store);

    /** A console of stores; its address. */
    static native long consoleOpen(long title, long length);

    /** Takes figures of stores at {@code now}, milliseconds since any moment. */
    static native long consoleTake(long console, long figures, long length, long now);

    /** Text: 1 the page of a look, 2 what becomes new of it, 3 its style, 4 its script. */
    static native long consoleShow(long console, long part, long look, long length, long now);

    /** Releases a console. */
    static native long consoleRelease(long console);

    /** A direct buffer over {@code bytes} bytes from {@code address}. */
    static native java.nio.ByteBuffer buffer(long address, long bytes);
}
