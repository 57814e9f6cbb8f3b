/**
 * Columns: how the fields of keys and values, which are messages of ProtoStream, become cells and
 * cells become fields.
 */
package io.entresol.jdbc.internal.column;
