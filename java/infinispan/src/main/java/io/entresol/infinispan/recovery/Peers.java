package io.entresol.infinispan.recovery;

import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.remoting.transport.Address;
import org.infinispan.security.actions.SecurityActions;

/** Asks all nodes of the view, this one too, how far they are with a cache. */
final class Peers {
    private static final long PATIENCE_SECONDS = 10;

    private final EmbeddedCacheManager manager;
    private final String cache;

    Peers(EmbeddedCacheManager manager, String cache) {
        this.manager = manager;
        this.cache = cache;
    }

    /** What they say, in the order of the view; those that say nothing are absent. */
    CompletionStage<List<Answer>> ask() {
        List<Address> view = List.copyOf(manager.getMembers());
        Map<Address, Answer> answers = new ConcurrentHashMap<>();
        return SecurityActions.getClusterExecutor(manager)
                .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                .submitConsumer(question(cache), (node, text, failure) -> {
                    if (failure == null && text != null && !text.isEmpty()) {
                        answers.put(node, Answer.parse(node.toString(), text));
                    }
                })
                .handle((done, failure) -> view.stream().map(node -> answers.getOrDefault(
                        node, Answer.absent(node.toString()))).toList());
    }

    /** Runs on the node that is asked; it captures nothing but the cache's name. */
    private static Function<EmbeddedCacheManager, String> question(String cache) {
        return (Function<EmbeddedCacheManager, String> & Serializable)
                asked -> Recovery.answer(asked, cache);
    }
}
