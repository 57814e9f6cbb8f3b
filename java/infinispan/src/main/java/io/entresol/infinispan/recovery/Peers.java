package io.entresol.infinispan.recovery;

import io.entresol.infinispan.Privileged;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.remoting.transport.Address;

/** Asks all nodes of the view, this one too. */
final class Peers {
    private static final long PATIENCE_SECONDS = 10;

    private final EmbeddedCacheManager manager;

    Peers(EmbeddedCacheManager manager) {
        this.manager = manager;
    }

    /**
     * What they say, in the order of the view; of those that say nothing an empty text. The
     * question runs on the node that is asked: it is serializable, and captures only what is.
     */
    CompletionStage<Map<Address, String>> ask(Function<EmbeddedCacheManager, String> question) {
        List<Address> view = List.copyOf(manager.getMembers());
        Map<Address, String> answers = new ConcurrentHashMap<>();
        return Privileged.getClusterExecutor(manager)
                .timeout(PATIENCE_SECONDS, TimeUnit.SECONDS)
                .submitConsumer(question, (node, text, failure) -> {
                    if (failure == null && text != null) {
                        answers.put(node, text);
                    }
                })
                .handle((done, failure) -> {
                    Map<Address, String> inOrder = new LinkedHashMap<>();
                    view.forEach(node -> inOrder.put(node, answers.getOrDefault(node, "")));
                    return inOrder;
                });
    }
}
