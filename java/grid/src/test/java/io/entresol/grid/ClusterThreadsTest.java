package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.infinispan.commons.configuration.io.ConfigurationResourceResolvers;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.commons.executors.BlockingResource;
import org.infinispan.configuration.global.JGroupsConfiguration;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ParserRegistry;
import org.jgroups.JChannel;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The threads that bring a cluster's messages, as the node's stacks have JGroups make them. */
class ClusterThreadsTest {
    /** As Infinispan's, in one of whose threads a server starts its cluster. */
    private static final class Blocking extends ThreadGroup implements BlockingResource {
        Blocking() {
            super("blocking");
        }
    }

    /** The bridge to another site is made once the node serves. */
    @BeforeAll
    static void serve() {
        SiteBridge.open();
    }

    /**
     * What nodes ask each other ran in them: a cache was taken back for as long as its removal
     * waited for an answer, which waited behind that in the same thread.
     */
    @ParameterizedTest
    @CsvSource({"stack.xml, grid", "stack-of-sites.xml, grid", "stack-of-sites.xml, bridge"})
    void noThreadThatBringsMessagesMayBlock(String file, String stack) {
        CompletableFuture<Thread> made = new CompletableFuture<>();
        Thread starts = new Thread(new Blocking(), () -> {
            try (JChannel channel = channel(file, stack)) {
                made.complete(channel.getProtocolStack().getTransport().getThreadPool()
                        .getThreadFactory().newThread(() -> { }));
            } catch (Exception failure) {
                made.completeExceptionally(failure);
            }
        });
        starts.start();
        Thread thread = made.join();
        assertFalse(thread.getThreadGroup() instanceof BlockingResource);
        assertTrue(thread.getName().startsWith("jgroups"), thread.getName());
    }

    private static JChannel channel(String file, String stack) throws Exception {
        Properties plan = new Properties();
        for (String members : new String[] {"cluster", "bridge"}) {
            plan.setProperty("entresol." + members + ".members", "127.0.0.1[7800]");
        }
        plan.setProperty("entresol.bridge.port", "7850");
        plan.setProperty("entresol.site", "here");
        plan.setProperty("entresol.site.other", "there");
        ConfigurationBuilderHolder holder = new ParserRegistry(
                ClusterThreads.class.getClassLoader(), false, plan).parse(
                ClusterThreads.class.getResourceAsStream(file), new ConfigurationBuilderHolder(),
                ConfigurationResourceResolvers.DEFAULT, MediaType.APPLICATION_XML);
        JGroupsConfiguration jgroups = holder.getGlobalConfigurationBuilder().build()
                .transport().jgroups();
        return jgroups.configurator(stack).createChannel("test");
    }
}
