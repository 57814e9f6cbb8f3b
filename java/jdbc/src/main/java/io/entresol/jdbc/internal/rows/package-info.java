/** Rows of a cache: read by key, by index or all, on this node and on the owners that it asks. */
package io.entresol.jdbc.internal.rows;
