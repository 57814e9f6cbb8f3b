/**
 * What programs see as JDBC: statements, parameters, results and metadata, which act as its
 * specification says where Avatica and Calcite act otherwise.
 */
package io.entresol.jdbc.internal.statement;
