/**
 * What is computed of rows, on the node that has them as on the one that asks: formulas, totals,
 * sums and extremes.
 */
package io.entresol.jdbc.internal.aggregate;
