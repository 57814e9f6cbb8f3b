package io.entresol.infinispan;

/**
 * What is wrong with a store.
 *
 * @param what the sentence that describes it
 * @param next what to do about it
 */
public record StoreTrouble(String what, String next) {
}
