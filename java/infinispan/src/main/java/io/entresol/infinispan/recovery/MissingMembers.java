package io.entresol.infinispan.recovery;

/** What a cache does if some of its members do not come back in time. */
public enum MissingMembers {
    /** It does not start. */
    REFUSE,
    /** It goes on if every segment has an owner among those that are there. */
    REPLICATED,
    /** It goes on with what is there. */
    LOSE
}
