/** The side of a server: the connections of its clients, and who may have one. */
package io.entresol.jdbc.internal.server;
