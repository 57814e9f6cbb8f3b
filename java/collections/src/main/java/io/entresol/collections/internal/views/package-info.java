/**
 * Java's collections over blocks in a heap, and the views that they give of themselves. Not for
 * other uses.
 */
package io.entresol.collections.internal.views;
