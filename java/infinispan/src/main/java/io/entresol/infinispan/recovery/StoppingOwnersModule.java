package io.entresol.infinispan.recovery;

import io.entresol.infinispan.EntresolStoreConfiguration;
import java.util.Collection;
import java.util.List;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.factories.impl.ModuleMetadataBuilder;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.distribution.TriangleDistributionInterceptor;
import org.infinispan.lifecycle.ModuleLifecycle;

/**
 * The part of Infinispan that gives {@link StoppingOwners} to caches on flash. Infinispan finds it
 * by its service file. Not for other uses.
 */
public final class StoppingOwnersModule implements ModuleMetadataBuilder, ModuleLifecycle {
    /** For the service loader. */
    public StoppingOwnersModule() {}

    @Override
    public String getModuleName() {
        return "entresol-infinispan";
    }

    @Override
    public Collection<String> getRequiredDependencies() {
        return List.of("core");
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
    public void cacheStarting(ComponentRegistry registry, Configuration configuration,
            String name) {
        if (configuration.persistence().stores().stream()
                .noneMatch(EntresolStoreConfiguration.class::isInstance)) {
            return;
        }
        AsyncInterceptorChain chain = registry.getComponent(AsyncInterceptorChain.class);
        // Where it is not, writes are answered as all other commands are.
        if (chain.findInterceptorExtending(TriangleDistributionInterceptor.class) != null
                && chain.findInterceptorWithClass(StoppingOwners.class) == null) {
            chain.addInterceptorBefore(
                    new StoppingOwners(), TriangleDistributionInterceptor.class);
        }
    }
}
