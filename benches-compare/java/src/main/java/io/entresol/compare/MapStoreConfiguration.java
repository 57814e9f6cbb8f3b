package io.entresol.compare;

import org.infinispan.commons.configuration.BuiltBy;
import org.infinispan.commons.configuration.ConfigurationFor;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.configuration.cache.AbstractStoreConfiguration;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;

/** Nothing to configure. */
@BuiltBy(MapStoreConfigurationBuilder.class)
@ConfigurationFor(MapStore.class)
public final class MapStoreConfiguration extends AbstractStoreConfiguration<MapStoreConfiguration> {
    MapStoreConfiguration(AttributeSet attributes, AsyncStoreConfiguration async) {
        super(Element.MAP_STORE, attributes, async);
    }

    private enum Element {
        MAP_STORE
    }
}
