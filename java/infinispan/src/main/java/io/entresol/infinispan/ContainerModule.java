package io.entresol.infinispan;

import java.util.Collection;
import java.util.List;
import org.infinispan.factories.impl.ModuleMetadataBuilder;
import org.infinispan.lifecycle.ModuleLifecycle;

/**
 * A part of Infinispan that follows the lives of containers and caches, and has no components of
 * its own. Infinispan finds it by its service file. Not for other uses.
 */
public abstract class ContainerModule implements ModuleMetadataBuilder, ModuleLifecycle {
    private final String name;
    private final List<String> required;

    /** Of the modules that must be there before it. */
    protected ContainerModule(String name, String... required) {
        this.name = name;
        this.required = List.of(required);
    }

    @Override
    public final String getModuleName() {
        return name;
    }

    @Override
    public final Collection<String> getRequiredDependencies() {
        return required;
    }

    @Override
    public final Collection<String> getOptionalDependencies() {
        return List.of();
    }

    @Override
    public final ModuleLifecycle newModuleLifecycle() {
        return this;
    }

    @Override
    public final void registerMetadata(ModuleBuilder builder) {
        // It has no components.
    }
}
