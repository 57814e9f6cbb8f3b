/**
 * The index of a cache: rebuilt from entries on flash, and kept in step with entries that expire or
 * belong to another node.
 */
package io.entresol.jdbc.internal.index;
