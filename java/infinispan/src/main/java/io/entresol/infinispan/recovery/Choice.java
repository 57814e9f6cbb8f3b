package io.entresol.infinispan.recovery;

/** What a node does next with a cache that it starts. */
sealed interface Choice {
    /** Asks again later; {@code why} becomes the error when the time is over. */
    record Wait(String why) implements Choice {
    }

    /** Asks again later: what was begun is not finished yet. */
    record Follow(String why) implements Choice {
    }

    /** Gives up. */
    record Refuse(String why) implements Choice {
    }

    /** Says that it is about to start the cache empty, then asks once more. */
    record Claim() implements Choice {
    }

    /** Leaves that to another one. */
    record Withdraw() implements Choice {
    }

    /** Starts the cache empty. */
    record StartEmpty() implements Choice {
    }

    /** Takes over a plan, and says so. */
    record Prepare(Plan plan) implements Choice {
    }

    /** Joins the cluster of a plan with the entries that it has. */
    record Restore(Plan plan) implements Choice {
    }

    /** Joins a cluster that went on, without entries. */
    record Join(Standing running) implements Choice {
    }

    /** Has those start the cache again that run it degraded, as all that it waits for are back. */
    record Reunite(long incarnation, String why) implements Choice {
    }

    /** Takes what this node has of the cache for nothing: it was undeployed, or nobody has it. */
    record Forget() implements Choice {
    }
}
