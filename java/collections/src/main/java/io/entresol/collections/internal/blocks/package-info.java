/**
 * What collections consist of in a heap: headers, entries, rows, nodes and cells, as blocks and
 * radix trees. Nothing here knows Java's collections. Not for other uses.
 */
package io.entresol.collections.internal.blocks;
