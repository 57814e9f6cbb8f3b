/**
 * The SQL of statements: its types, functions and operators where they are not those of Calcite.
 */
package io.entresol.jdbc.internal.dialect;
