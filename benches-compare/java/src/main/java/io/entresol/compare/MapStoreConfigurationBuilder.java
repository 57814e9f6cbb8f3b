package io.entresol.compare;

import org.infinispan.configuration.cache.AbstractStoreConfiguration;
import org.infinispan.configuration.cache.AbstractStoreConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;

/** Builds the configuration of a {@link MapStore}. */
public final class MapStoreConfigurationBuilder extends
        AbstractStoreConfigurationBuilder<MapStoreConfiguration, MapStoreConfigurationBuilder> {
    /** As Infinispan makes it. */
    public MapStoreConfigurationBuilder(PersistenceConfigurationBuilder builder) {
        super(builder, AbstractStoreConfiguration.attributeDefinitionSet());
    }

    @Override
    public MapStoreConfiguration create() {
        return new MapStoreConfiguration(attributes.protect(), async.create());
    }

    @Override
    public MapStoreConfigurationBuilder self() {
        return this;
    }
}
