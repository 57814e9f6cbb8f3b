/**
 * Planning: caches as tables, the nodes of a plan that read, join and change caches, and the rules
 * that move parts of a statement into them.
 */
package io.entresol.jdbc.internal.plan;
