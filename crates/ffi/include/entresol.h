/* The persistent heap, the flash store and its ordered tables for C: what libentresol_ffi exports.
 *
 * All functions take and give 64-bit integers: numbers, addresses, addresses of texts.
 * A result below 0 is a failure: its negation is the address of a text, which is
 *   { uint64_t kind; uint64_t length; char bytes[length]; }
 * (UTF-8, no zero at the end) and is released with entresol_text_release. Kinds: 1 no room,
 * 2 not valid, 3 in use, 4 corrupt, 5 poisoned by a failed write, 6 another kind or format,
 * 7 input or output, 8 a defect of the library, 9 another transaction changes the map: no function
 * waits for one, so try again once it may have ended, 13 the same, but the other may wait for this
 * one, so undo it; 14 poisoned once the transaction was in the log: it is seen as committed, and
 * reopening tells whether it is; of stores: 10 too much waits already, 11 the encryption key is not
 * the store's, 12 the device is in use, foreign or absent.
 *
 * Levels of durability: 0 the heap's own, 1 sync, 2 group (argument: microseconds), 3 buffered
 * (argument: milliseconds), 4 none. Media: 0 by what the file is, 1 pages, 2 bytes. A heap may be
 * used by several threads at once; a transaction, a buffer, a view by one at a time.
 */
#ifndef ENTRESOL_H
#define ENTRESOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates a heap; its address. `key`: 32 bytes that it is encrypted with (AES-256-GCM), or 0. */
int64_t entresol_heap_create(int64_t path, int64_t path_length, int64_t bytes, int64_t limit,
        int64_t label, int64_t durability, int64_t argument, int64_t medium, int64_t key);

/* Opens a heap; its address. Flag 1: read only; flag 2: whatever the label. `key`: the 32 bytes
 * that it was created with, or 0; any other is a failure of kind 6. */
int64_t entresol_heap_open(int64_t path, int64_t path_length, int64_t label, int64_t flags,
        int64_t durability, int64_t argument, int64_t medium, int64_t key);

/* Closes a heap, whose memory is zeros from now on, and whose address is still to be released. */
int64_t entresol_heap_close(int64_t heap);

/* Releases a heap's address, and its memory once nothing of it is left. */
int64_t entresol_heap_release(int64_t heap);

/* Everything committed is durable on return. */
int64_t entresol_heap_sync(int64_t heap);

/* Address of handle 0. */
int64_t entresol_heap_base(int64_t heap);

/* Bytes that handles may lie in now. */
int64_t entresol_heap_bytes(int64_t heap);

/* Bytes that the heap may grow to. */
int64_t entresol_heap_limit(int64_t heap);

/* The lowest handle there can be. */
int64_t entresol_heap_first(int64_t heap);

/* The root. */
int64_t entresol_heap_root(int64_t heap);

/* Sets the root in a transaction of its own. */
int64_t entresol_heap_set_root(int64_t heap, int64_t root);

/* Grows the heap to `bytes`. */
int64_t entresol_heap_grow(int64_t heap, int64_t bytes);

/* Gives free pages at the end back to the file system; bytes left. */
int64_t entresol_heap_shrink(int64_t heap);

/* Allocates in a transaction of its own; `header`, if not 0, goes to the first 8 bytes. */
int64_t entresol_heap_allocate(int64_t heap, int64_t bytes, int64_t header, int64_t durability);

/* Frees in a transaction of its own. */
int64_t entresol_heap_free(int64_t heap, int64_t handle, int64_t durability);

/* 1 if `handle` is a live allocation, else 0. */
int64_t entresol_heap_is_live(int64_t heap, int64_t handle);

/* Bytes of the allocation, 0 if it is not live. */
int64_t entresol_heap_usable(int64_t heap, int64_t handle);

/* 1 if allocations of `bytes` now have a size class of their own. */
int64_t entresol_heap_register(int64_t heap, int64_t bytes);

/* Makes a range as durable as a commit at that level. */
int64_t entresol_heap_persist(int64_t heap, int64_t offset, int64_t length, int64_t durability);

/* Makes every page durable that was ever stored to. */
int64_t entresol_heap_persist_dirty(int64_t heap);

/* Writes up to `count` figures to `out`; how many there are. */
int64_t entresol_heap_statistics(int64_t heap, int64_t out, int64_t count);

/* Text: what the medium holds and when. */
int64_t entresol_heap_durability(int64_t heap);

/* Text: what is wrong with the heap; 0 if nothing is. */
int64_t entresol_heap_check(int64_t heap);

/* Copies the committed heap to a new file. */
int64_t entresol_heap_backup(int64_t heap, int64_t path, int64_t path_length);

/* Keeps freed blocks from being used again; the guard's address. */
int64_t entresol_heap_guard(int64_t heap);

/* Releases a guard. */
int64_t entresol_guard_release(int64_t guard);

/* Begins a transaction; its address. */
int64_t entresol_transaction_begin(int64_t heap);

/* Allocates; the handle. */
int64_t entresol_transaction_allocate(int64_t transaction, int64_t bytes);

/* Frees. */
int64_t entresol_transaction_free(int64_t transaction, int64_t handle);

/* Sets the root. */
int64_t entresol_transaction_set_root(int64_t transaction, int64_t root);

/* The number of a savepoint. */
int64_t entresol_transaction_savepoint(int64_t transaction);

/* Rolls allocations and frees back to a savepoint; it and later ones are gone. */
int64_t entresol_transaction_rollback(int64_t transaction, int64_t savepoint);

/* Commits pairs of offset and length, and a transaction if there is one (else 0). After a failure
 * the caller puts back what it stored, but not after one of kind 14. */
int64_t entresol_transaction_commit(int64_t heap, int64_t transaction, int64_t ranges,
        int64_t count, int64_t durability);

/* Aborts. */
int64_t entresol_transaction_abort(int64_t transaction);

/* Allocates native memory; its address. */
int64_t entresol_buffer_allocate(int64_t bytes);

/* Frees native memory of that size. */
int64_t entresol_buffer_free(int64_t address, int64_t bytes);

/* Releases a text. */
int64_t entresol_text_release(int64_t text);

/* Makes an ordered map; its handle. */
int64_t entresol_tree_create(int64_t transaction);

/* Opens an ordered map; its address. */
int64_t entresol_tree_open(int64_t heap, int64_t handle);

/* Releases the address of an ordered map. */
int64_t entresol_tree_close(int64_t tree);

/* How many entries. */
int64_t entresol_tree_entries(int64_t tree);

/* Address of a count that is odd while words of the map change, and differs afterwards. */
int64_t entresol_tree_version(int64_t tree);

/* 1 if there is the key, with its value at `out`; else 0. */
int64_t entresol_tree_get(int64_t tree, int64_t key, int64_t length, int64_t out);

/* Puts an entry, alone if transaction is 0; as treeGet for the value before. */
int64_t entresol_tree_put(int64_t tree, int64_t transaction, int64_t key, int64_t length,
        int64_t value, int64_t out);

/* Removes an entry; as treePut. */
int64_t entresol_tree_remove(int64_t tree, int64_t transaction, int64_t key, int64_t length,
        int64_t out);

/* Makes other transactions that change the map wait until this one ends. */
int64_t entresol_tree_hold(int64_t tree, int64_t transaction);

/* Removes all entries. */
int64_t entresol_tree_clear(int64_t tree, int64_t transaction);

/* Frees the map with all entries. */
int64_t entresol_tree_destroy(int64_t tree, int64_t transaction);

/* Moves the upper half to a new map; its handle, 0 if there is none. */
int64_t entresol_tree_split(int64_t tree, int64_t transaction);

/* A view of the entries between two bounds; its address. */
int64_t entresol_tree_range(int64_t tree, int64_t transaction, int64_t bounds);

/* Writes as many of the next entries as fit to `out`; how many. */
int64_t entresol_range_next(int64_t range, int64_t backwards, int64_t out, int64_t bytes);

/* Releases a view. */
int64_t entresol_range_close(int64_t range);

/* Lists the live blocks of a heap; the list's address. */
int64_t entresol_blocks_of_heap(int64_t heap);

/* Lists the blocks of an ordered map, which must not change meanwhile; the list's address. */
int64_t entresol_blocks_of_tree(int64_t heap, int64_t handle);

/* Writes the next handles to `out`, `count` at most; how many, 0 at the end. */
int64_t entresol_blocks_next(int64_t blocks, int64_t out, int64_t count);

/* Releases a list of blocks. */
int64_t entresol_blocks_close(int64_t blocks);

/* Maps a file, which is made with `bytes` unless that is 0; the pool's address. */
int64_t entresol_pool_open(int64_t path, int64_t path_length, int64_t bytes);

/* Address of offset 0. */
int64_t entresol_pool_base(int64_t pool);

/* Bytes of the pool. */
int64_t entresol_pool_bytes(int64_t pool);

/* Makes a range durable. */
int64_t entresol_pool_flush(int64_t pool, int64_t offset, int64_t length);

/* Lets the file go; the memory is zeros from now on, and the address still to be released. */
int64_t entresol_pool_close(int64_t pool);

/* Releases a pool's memory and address. */
int64_t entresol_pool_release(int64_t pool);

/* Flash stores
 *
 * A request is 16 words: { operation: 1 get, 2 put, 3 remove, 4 touch, 5 get without the value,
 * 16 more for a get that may wait for the device in this call, which then reads at less cost;
 * token, of less than 63 bits; now in ms since 1970, or 0 for the system's clock; space |
 * partition << 16; key's address; its length; value's address; its length; when the entry ends, in
 * ms, 0 never; label | seconds of idleness << 32; condition: 0 none, 1 absent, 2 present, 3 of the
 * version that follows; version; durability: 0 the store's own, 1 memory, 2 process, 3 flushed,
 * 4 periodic, 5 synced; milliseconds of periodic; address of a place for the outcome, aligned to 8;
 * its bytes }. Operations on one key that overlap in time happen in any order; a
 * write comes after the drops and the waiting writes that were begun before it.
 *
 * An outcome is a record of 8 words and bytes: { bytes of the record; token; kind: 1 found,
 * 2 missing, 3 stored, 4 refused by the condition, 5 removed, 6 touched, 7 a job or a page of a
 * scan is done, 8 an entry of a scan, 9 failed; number: the entry's version (of 4: the one that is
 * there), of 7 whether the scan goes on, of 9 the kind of the failure; when the entry ends (of 7:
 * how many damaged records the page passed over); label | seconds of idleness << 32; key's length;
 * value's length }, then the key and the value, each filled up to a multiple of 8. The value of 9,
 * and of 7 after damaged records, is a sentence.
 */

/* Opens a store, or makes it; its address. The options are lines of NAME=VALUE, sizes in bytes:
 * devices (a path, or several with commas between), instance (for {n} in paths), selection (search,
 * stripe), capacity (of a new file), memory, cache, shards, segment, durability (memory, process,
 * flushed, periodic:MS, synced), write-mode (through, behind), reclaim (store, cache), compression
 * (none, lz4, zstd), mode (open, overwrite, reformat, read-only), encryption-key (64 hexadecimal
 * digits), write-budget (bytes a second, for caches only; 0 for none), buffer-directory, journal
 * (bytes of the device for the journal that ordered tables need; 0 for none), tables-waiting (most
 * bytes of their changes that wait in memory), tables-filter-bits (of memory for each of their rows,
 * by which gets of absent keys read nothing; 0 for none). */
int64_t entresol_store_open(int64_t options, int64_t length);

/* Begins `count` requests; how many were answered at once. The first word of each becomes 1 if it
 * was, with the record at its place for the outcome, else 0: that outcome is reaped. Waits for
 * nothing but the gets that say so. */
int64_t entresol_store_submit(int64_t store, int64_t requests, int64_t count);

/* Waits for outcomes; how many there are. The address of their records goes to `out`, their bytes
 * to the next word; they stay until the next call. 0 once the store is closed and all were given
 * out. For one thread at a time. */
int64_t entresol_store_reap(int64_t store, int64_t out);

/* Begins a job, whose outcome is reaped: 1 sync, 2 drop a partition, 3 drop a space; the argument
 * is space | partition << 16. What this call refuses, as after a close, has no other outcome. */
int64_t entresol_store_begin(int64_t store, int64_t token, int64_t job, int64_t argument);

/* Entries of a partition, or of the whole space if `whole` is not 0; expired ones that nobody has
 * found yet included. Reads nothing. */
int64_t entresol_store_count(int64_t store, int64_t place, int64_t whole);

/* Text: figures since the store was opened, a JSON object; more may come. It does not wait for the
 * device: `oldest_pending_io_seconds` says for how long that has not answered, at least. */
int64_t entresol_store_statistics(int64_t store);

/* Text: all segments of the device in about `groups` groups of neighbours, for a map of it: a JSON
 * array with an array for each group. Its numbers: segments, those that are free, those kept for a
 * damaged record, bytes of all records, bytes of live ones, segments that reclaim could take, and
 * the sum over these of how many writes ago their records were put, in the mean. 0, and no text,
 * while the store waits for its device. */
int64_t entresol_store_segments(int64_t store, int64_t groups);

/* Closes a store once all that was begun is finished; outcomes can still be reaped. */
int64_t entresol_store_close(int64_t store);

/* Releases a store's address; closes it before, if nobody did. */
int64_t entresol_store_release(int64_t store);

/* Removes write buffers that outlived their process, of stores that had files in the folder that
 * `length` bytes at `folder` name, and whose files are gone; how many files of buffers. For who
 * deleted a store that was not closed. */
int64_t entresol_store_sweep(int64_t folder, int64_t length);

/* A scan of those partitions that `count` 16-bit numbers name, of all if `count` is below 0; its
 * address. Entries that are there from its first page to its last are given at least once. */
int64_t entresol_scan_open(int64_t store, int64_t space, int64_t partitions, int64_t count,
        int64_t keys_only);

/* Begins reading about `limit` entries, those that ended by `now` left out. Their records and one
 * that ends the page are reaped, unless this call refuses. One page at a time. */
int64_t entresol_scan_next(int64_t store, int64_t scan, int64_t token, int64_t limit, int64_t now);

/* Releases a scan; a page that is being read still comes. */
int64_t entresol_scan_close(int64_t scan);

/* Ordered tables
 *
 * A store that was opened with a journal has them. Each call below works in the caller's thread,
 * waits for the device, and may be made by many threads at once, on one table too: 32 work at a
 * time, others wait for their turn, and writers that wait for a sync share it. Calls that come after
 * the store was closed fail with kind 5; closing waits for those under way.
 *
 * A key has 1 byte to 2 KiB. Keys are ordered as bytes without a sign. What no merge has folded is
 * given as it is, a base and the parts that were added to it since:
 *
 *   row    { base's length, or all ones for none; number of parts; base; { length; part } ... }
 *   record { bytes of the record; key's length; key; row }
 *
 * All lengths and numbers have 32 bits, little-endian. Nothing stands between the pieces,
 * so that none is aligned: copy them.
 *
 * A batch is records of changes and conditions, in the order of their effect:
 *
 *   { table's address in 64 bits; kind; key's length; value's length; 0; key; value }
 *
 * with kind 1 put, 2 remove, 3 add a part; 4 the row is absent, 5 it is present, 6 it has this
 * value. It has up to half of a segment. Either all of it is durable or nothing; readers see its
 * rows one by one, but for scans of one moment. Conditions speak of the rows before the batch.
 */

/* The table that a name of 1 byte to 2 KiB names; its address. It comes into being with its first
 * row. A table may be opened several times. */
int64_t entresol_table_open(int64_t store, int64_t name, int64_t length);

/* The same, of a table that keeps counts: `entresol_table_count` says how many rows it has.
 * An error of kind 2 names the table if it was made without them: it stays so. Merges of a table
 * that keeps counts read each leaf that they change. It keeps them when it is dropped, and may be
 * opened by `entresol_table_open` as well. */
int64_t entresol_table_open_counted(int64_t store, int64_t name, int64_t length);

/* How many rows a table that keeps counts has from the key at `low` on and below the one at `high`;
 * a length of 0 is no bound. The rank of a key is the count below it. Rows that are written
 * meanwhile are counted or not. It reads the leaves with changes since the last count, and after a
 * crash those that nobody has read. Parts are folded by the table's merge function. */
int64_t entresol_table_count(int64_t table, int64_t low, int64_t low_length, int64_t high,
        int64_t high_length);

/* About how many rows a table has, whether it keeps counts or not. It reads nothing. The words:
 * { address of the lowest key; its length; address of the key at which the range ends, not
 * included; its length; becomes how many rows more or fewer there may be, all ones if nobody
 * knows }; a length of 0 is no bound. Nobody knows after a crash, where inner nodes are not in
 * memory, and where more than 4096 changes wait. */
int64_t entresol_table_estimate(int64_t table, int64_t words);

/* Releases the address of a table. */
int64_t entresol_table_close(int64_t table);

/* Bytes of the row of a key, 0 if there is none. The row is at `out`, unless it has more than
 * `capacity` bytes: call again with room for it. */
int64_t entresol_table_get(int64_t table, int64_t key, int64_t length, int64_t out,
        int64_t capacity);

/* Gets the rows of several keys of one table or several, all at once, so that the device reads them
 * side by side; how many rows there are. The words: { address of the keys; their bytes; address of
 * a place for the answers; its bytes; becomes the bytes of the answers, which are there if they
 * have room: else call again with more }. Keys and answers stand one after the other, with nothing
 * between, and answers are in the order of their keys:
 *
 *   key    { table's address in 64 bits; key's length; 0; key }
 *   answer { bytes of the row, 0 if there is none; row }
 *
 * Each row is as it is when it is read, as with as many calls of `entresol_table_get`. Where one
 * cannot be read the call fails. */
int64_t entresol_tables_get(int64_t store, int64_t words);

/* A page of records; how many. The words: { address of the lowest key; its length; address of the
 * key at which the range ends, not included; its length; flags: 1 there is such a key, 2 from the
 * highest row down, 4 the first word is a rank: the page begins with the row that has so many rows
 * below it, in a table that keeps counts, and has no bounds; 8 the page is of one moment, not with
 * 4; most rows; address of the page; its bytes; becomes bytes of the records in it; becomes 1 if
 * more rows may follow }. The next page begins behind the last row: at its key and a zero byte, or,
 * downwards, with its key as the end. If the first row does not fit, there are none, and the ninth
 * word becomes the bytes that it needs.
 *
 * A page of one moment shows each batch whole or not at all, of those rows of the batch that lie in
 * its range; the next page is of a later moment. It is for ranges of some leaves: where a leaf of
 * them was merged meanwhile it is read anew. It has 4096 rows with waiting changes at most. Where
 * merges come between again and again the call does some of them, for up to ten seconds; then it
 * fails with kind 10. */
int64_t entresol_table_scan(int64_t table, int64_t words);

/* Removes all rows of a table: at once for those who read later, durable on return. */
int64_t entresol_table_drop(int64_t table);

/* Says that function `function`, a number of the caller's, folds the rows of a table when they are
 * merged: those that have parts; with flag 1 all rows of a leaf that is written anew. For as long
 * as the store is open. Until there is one, parts wait in memory and in the journal. */
int64_t entresol_table_merge(int64_t table, int64_t function, int64_t flags);

/* Writes a batch, also with sync if its level says so; the number of its last change, which is
 * above 0. 0: nothing was written, since a condition does not hold. The words: { address of the
 * batch; its bytes; durability: 0 the store's own, 1 memory, 2 process, 3 flushed, 4 periodic,
 * 5 synced; milliseconds of periodic; becomes the number, from 0 on, of the condition }. Where too
 * much waits for merges the call does some of them first, for up to ten seconds; then it fails with
 * kind 10, and says what stands in the way. */
int64_t entresol_tables_write(int64_t store, int64_t words);

/* Brings the answers to a question of merges and waits for the next one; how many rows that is
 * about, 0 once the store is closed. For one thread, which must not use tables meanwhile. The words:
 * { ticket of the question that is answered, 0 at first, becomes the next one's; 1 answers follow,
 * 2 a sentence that says why there are none, 3 the thread is about to come and this call returns at
 * once, so that merges wait for it; their address; their bytes; becomes the address of the
 * question's records, which stay until the next call; becomes their bytes; becomes the function's
 * number; becomes 0 }. An answer, one a row in their order, is { 0 the base stays, 1 the row has
 * this value, 2 it is gone; length; value }. After a sentence, or none within 30 s, the leaf's
 * changes stay where they are, and the next sweep of merges asks again. */
int64_t entresol_tables_fold(int64_t store, int64_t words);

/* Text: why the last sweep of merges let changes of a table wait; 0 if it let none wait. */
int64_t entresol_tables_held_back(int64_t store);

/* Text: a JSON array with an object for each table in memory: { "name": its bytes in hexadecimal;
 * since it came into memory: "changes", "change_bytes" of their keys and values, "pages_written",
 * "page_bytes"; now: "waiting_changes", which are not merged, and "memory_bytes" }. */
int64_t entresol_tables_figures(int64_t store);

/* A console of stores
 *
 * A page of HTML of what the stores of a process do, for a program that serves it; it may be used
 * by several threads at once. Figures and looks are JSON objects in UTF-8. A member that is absent
 * is not shown, and more may come. Names and sentences are text, whatever they hold. Four stores
 * that have entries are shown at length, others where one is chosen.
 *
 * Figures: { "stores": [store] }.
 * A store: { "name": of its cache,
 *   "store": what entresol_store_statistics gave; absent where the store is not open,
 *   "cache": { "reads", "hits", "misses", "writes", "removes", "evictions", "in_heap": numbers of
 *     the cache above it; "read_us", "write_us": how long they take in the mean, microseconds },
 *   "took": { "reads", "writes": [[nanoseconds, calls]]: how many calls of the store took how long
 *     since the figures before; once for each latency } }.
 * A look: { "stores": [a store, with more: "template", "device": texts; "memory": { "cap_bytes" };
 *     "segments": what entresol_store_segments gave; "trouble": { "what", "next" }: what is wrong
 *     and what to do; "withdrew": why the node does not serve the cache],
 *   "node", "cluster": names; "uptime_seconds"; "foot": a sentence for the foot of the page;
 *   "nodes": [{ "node": a name, "page": HOST:PORT of its page; "stores": [a store], "failed": why
 *     it said nothing }], this one included;
 *   "span": "day" for charts of a day, else they are of ten minutes;
 *   "cache": the name of the one store to show, else all are }. */

/* A console of that title; its address. */
int64_t entresol_console_open(int64_t title, int64_t length);

/* Takes figures, once a second, for charts. `now`: milliseconds since any moment that stays the
 * same; of entresol_console_show, too. Samples of stores that are not named are let go. */
int64_t entresol_console_take(int64_t console, int64_t figures, int64_t length, int64_t now);

/* Text: a part of the console, made of a look. 1: the page, to be served at /; 2: what becomes new
 * of it, at /console/now, which its script asks for with the query of the page every five seconds.
 * Without a look: 3: its style, at /console/style.css; 4: its script, at /console/script.js. The
 * addresses in the page are /?cache=NAME&span=SPAN, with what names the look's members. */
int64_t entresol_console_show(int64_t console, int64_t part, int64_t look, int64_t length,
        int64_t now);

/* Releases a console. */
int64_t entresol_console_release(int64_t console);

#ifdef __cplusplus
}
#endif

#endif
