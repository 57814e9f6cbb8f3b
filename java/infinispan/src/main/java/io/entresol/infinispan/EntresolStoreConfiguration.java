package io.entresol.infinispan;

import io.entresol.infinispan.recovery.MissingMembers;
import io.entresol.infinispan.recovery.RecoveryOptions;
import java.util.Locale;
import java.util.Optional;
import org.infinispan.commons.configuration.BuiltBy;
import org.infinispan.commons.configuration.ConfigurationFor;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.configuration.attributes.AttributeSet;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.commons.util.TimeQuantity;
import org.infinispan.configuration.cache.AbstractStoreConfiguration;
import org.infinispan.configuration.cache.AsyncStoreConfiguration;
import org.infinispan.configuration.serializing.SerializedWith;

/** How a flash store of a cache is configured. */
@BuiltBy(EntresolStoreConfigurationBuilder.class)
@ConfigurationFor(EntresolStore.class)
@SerializedWith(EntresolStoreConfigurationSerializer.class)
public class EntresolStoreConfiguration
        extends AbstractStoreConfiguration<EntresolStoreConfiguration> {
    /** Files or block devices, with commas between; else a file under {@link #PATH}. */
    public static final AttributeDefinition<String> DEVICES = text("devices", null);
    /** What a list of devices means: {@code search} or {@code stripe}. */
    public static final AttributeDefinition<String> SELECTION = text("selection", "search");
    /** The folder of the caches' files, below the persistent location unless it is absolute. */
    public static final AttributeDefinition<String> PATH = text("path", null);
    /** Size of a file that is made, such as {@code 10GiB}. */
    public static final AttributeDefinition<String> CAPACITY = text("capacity", "1GiB");
    /** One cap for index, write buffers and cached values, outside of Java's heap. */
    public static final AttributeDefinition<String> MEMORY = text("memory", "256MiB");
    /** {@code memory}, {@code process}, {@code flushed}, {@code periodic:MS} or {@code synced}. */
    public static final AttributeDefinition<String> DURABILITY = text("durability", "process");
    /** {@code none}, {@code lz4} or {@code zstd}. */
    public static final AttributeDefinition<String> COMPRESSION = text("compression", "none");
    /** Whether a cluster recovers from its stores: {@code true} or {@code false}. */
    public static final AttributeDefinition<String> RECOVERY = text("recovery", "false");
    /** How long the members of a cluster that recovers wait for each other, such as {@code 5m}. */
    public static final AttributeDefinition<String> RECOVERY_TIMEOUT =
            text("recovery-timeout", "10m");
    /** What happens then: {@code refuse}, {@code replicated} or {@code lose}. */
    public static final AttributeDefinition<String> RECOVERY_MISSING =
            text("recovery-missing", "refuse");

    /** All attributes. */
    public static AttributeSet attributeDefinitionSet() {
        return new AttributeSet(EntresolStoreConfiguration.class,
                AbstractStoreConfiguration.attributeDefinitionSet(), DEVICES, SELECTION, PATH,
                CAPACITY, MEMORY, DURABILITY, COMPRESSION, RECOVERY, RECOVERY_TIMEOUT,
                RECOVERY_MISSING);
    }

    /** Of attributes that the builder checked. */
    public EntresolStoreConfiguration(AttributeSet attributes, AsyncStoreConfiguration async) {
        super(Element.ENTRESOL_STORE, attributes, async);
    }

    /** The value of an attribute. */
    String get(AttributeDefinition<String> attribute) {
        return attributes.attribute(attribute).get();
    }

    /** How the cluster recovers; empty if it does not. */
    Optional<RecoveryOptions> recovery() {
        return !Boolean.parseBoolean(get(RECOVERY)) ? Optional.empty()
                : Optional.of(new RecoveryOptions(
                        TimeQuantity.valueOf(get(RECOVERY_TIMEOUT)).longValue(),
                        MissingMembers.valueOf(get(RECOVERY_MISSING).toUpperCase(Locale.ROOT))));
    }

    /** Whether a cluster recovers from its stores: such a store waits for others in its start. */
    public boolean recovers() {
        return recovery().isPresent();
    }

    /** The cap of {@link #MEMORY}. */
    public long memoryBytes() {
        return ByteQuantity.parse(get(MEMORY));
    }

    private static AttributeDefinition<String> text(String name, String value) {
        return AttributeDefinition.builder(name, value, String.class).immutable().build();
    }
}
