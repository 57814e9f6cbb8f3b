/**
 * Runs of statements: their cancellation, the clients that wait for them, and the methods that the
 * code generated for a statement calls.
 */
package io.entresol.jdbc.internal.run;
