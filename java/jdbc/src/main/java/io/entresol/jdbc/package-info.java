/**
 * SQL over caches: {@link io.entresol.jdbc.Driver} is what programs use, {@link
 * io.entresol.jdbc.SqlServer} and {@link io.entresol.jdbc.Shell} stand beside it. The packages
 * below {@code internal} are not for other uses; each uses only those under it:
 *
 * <pre>
 *            server
 *          statement
 *            plan
 *            rows
 *     run   aggregate   index
 *       dialect   column
 * </pre>
 */
package io.entresol.jdbc;
