package io.entresol.jdbc;

import java.util.Collection;
import java.util.List;
import org.infinispan.Cache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.factories.impl.ModuleMetadataBuilder;
import org.infinispan.lifecycle.ModuleLifecycle;
import org.infinispan.query.mapper.mapping.SearchMapping;

/**
 * The part of Infinispan that rebuilds indexes in memory from entries on flash, before their cache
 * serves anybody. Infinispan finds it by its service file. Not for other uses.
 */
public final class IndexModule implements ModuleMetadataBuilder, ModuleLifecycle {
    /** For the service loader. */
    public IndexModule() {}

    @Override
    public String getModuleName() {
        return "entresol-jdbc";
    }

    @Override
    public Collection<String> getRequiredDependencies() {
        return List.of("core", "query", "server-core");
    }

    @Override
    public Collection<String> getOptionalDependencies() {
        return List.of();
    }

    @Override
    public ModuleLifecycle newModuleLifecycle() {
        return this;
    }

    @Override
    public void registerMetadata(ModuleBuilder builder) {}

    @Override
    public void cacheStarted(ComponentRegistry registry, String name) {
        Configuration configuration = registry.getComponent(Configuration.class);
        if (!configuration.indexing().enabled()
                || registry.getComponent(SearchMapping.class) == null) {
            return;
        }
        if (!isLost(configuration)) {
            registry.registerComponent(new IndexState(IndexState.Stage.COMPLETE),
                    IndexState.class);
        } else if (configuration.indexing().startupMode() != IndexStartupMode.NONE) {
            registry.registerComponent(new IndexState(IndexState.Stage.UNKNOWN), IndexState.class);
        } else {
            IndexState state = new IndexState(IndexState.Stage.REBUILT);
            registry.registerComponent(state, IndexState.class);
            new IndexRebuild(registry.getComponent(Cache.class).getAdvancedCache(),
                    registry.getComponent(SearchMapping.class), state).run();
        }
    }

    /** Whether entries outlive their index. */
    private static boolean isLost(Configuration configuration) {
        return configuration.indexing().storage() == IndexStorage.LOCAL_HEAP
                && configuration.persistence().stores().stream()
                        .anyMatch(store -> !store.purgeOnStartup());
    }
}
