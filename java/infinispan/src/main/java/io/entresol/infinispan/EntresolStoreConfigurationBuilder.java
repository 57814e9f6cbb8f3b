package io.entresol.infinispan;

import static io.entresol.infinispan.EntresolStoreConfiguration.CAPACITY;
import static io.entresol.infinispan.EntresolStoreConfiguration.COMPRESSION;
import static io.entresol.infinispan.EntresolStoreConfiguration.DEVICES;
import static io.entresol.infinispan.EntresolStoreConfiguration.DURABILITY;
import static io.entresol.infinispan.EntresolStoreConfiguration.MEMORY;
import static io.entresol.infinispan.EntresolStoreConfiguration.PATH;
import static io.entresol.infinispan.EntresolStoreConfiguration.RECOVERY;
import static io.entresol.infinispan.EntresolStoreConfiguration.RECOVERY_MISSING;
import static io.entresol.infinispan.EntresolStoreConfiguration.RECOVERY_TIMEOUT;
import static io.entresol.infinispan.EntresolStoreConfiguration.SELECTION;

import io.entresol.Compression;
import io.entresol.Durability;
import io.entresol.infinispan.recovery.MissingMembers;
import java.util.Locale;
import java.util.Set;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.commons.util.TimeQuantity;
import org.infinispan.configuration.cache.AbstractStoreConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;

/** Builds the configuration of a flash store. */
public class EntresolStoreConfigurationBuilder extends AbstractStoreConfigurationBuilder<
        EntresolStoreConfiguration, EntresolStoreConfigurationBuilder> {
    /** As Infinispan makes it. */
    public EntresolStoreConfigurationBuilder(PersistenceConfigurationBuilder builder) {
        super(builder, EntresolStoreConfiguration.attributeDefinitionSet());
    }

    /** Files or block devices, with commas between; else a file under {@link #path}. */
    public EntresolStoreConfigurationBuilder devices(String list) {
        return set(DEVICES, list);
    }

    /** What a list of devices means: {@code search} or {@code stripe}. */
    public EntresolStoreConfigurationBuilder selection(String selection) {
        return set(SELECTION, selection);
    }

    /** The folder of the caches' files, below the persistent location unless it is absolute. */
    public EntresolStoreConfigurationBuilder path(String folder) {
        return set(PATH, folder);
    }

    /** Size of a file that is made, such as {@code 10GiB}. */
    public EntresolStoreConfigurationBuilder capacity(String size) {
        return set(CAPACITY, size);
    }

    /** One cap for index, write buffers and cached values, outside of Java's heap. */
    public EntresolStoreConfigurationBuilder memory(String size) {
        return set(MEMORY, size);
    }

    /** What an acknowledged write survives: {@link Durability#parse}. */
    public EntresolStoreConfigurationBuilder durability(String level) {
        return set(DURABILITY, level);
    }

    /** {@code none}, {@code lz4} or {@code zstd}. */
    public EntresolStoreConfigurationBuilder compression(String compression) {
        return set(COMPRESSION, compression);
    }

    /** Whether a cluster recovers from its stores: {@code true} or {@code false}. */
    public EntresolStoreConfigurationBuilder recovery(String recovery) {
        return set(RECOVERY, recovery);
    }

    /** How long the members of a cluster that recovers wait for each other, such as {@code 5m}. */
    public EntresolStoreConfigurationBuilder recoveryTimeout(String time) {
        return set(RECOVERY_TIMEOUT, time);
    }

    /** What happens then: {@code refuse}, {@code replicated} or {@code lose}. */
    public EntresolStoreConfigurationBuilder recoveryMissing(String choice) {
        return set(RECOVERY_MISSING, choice);
    }

    @Override
    public void validate() {
        super.validate();
        check(CAPACITY, ByteQuantity::parse);
        check(MEMORY, ByteQuantity::parse);
        check(DURABILITY, Durability::parse);
        check(COMPRESSION, name -> Compression.valueOf(name.toUpperCase(Locale.ROOT)));
        check(RECOVERY_TIMEOUT, TimeQuantity::valueOf);
        check(RECOVERY_MISSING, name -> MissingMembers.valueOf(name.toUpperCase(Locale.ROOT)));
        expect(SELECTION, "search", "stripe");
        expect(RECOVERY, "true", "false");
        if (get(DEVICES) != null && get(PATH) != null) {
            throw wrong(PATH, get(PATH), "expected either devices or path, not both", null);
        }
        if (attributes.attribute(EntresolStoreConfiguration.SHARED).get()) {
            throw new CacheConfigurationException("entresol-store: shared is true; a store on"
                    + " flash belongs to one node");
        }
    }

    @Override
    public EntresolStoreConfiguration create() {
        return new EntresolStoreConfiguration(attributes.protect(), async.create());
    }

    @Override
    public EntresolStoreConfigurationBuilder self() {
        return this;
    }

    EntresolStoreConfigurationBuilder set(AttributeDefinition<String> attribute, String value) {
        attributes.attribute(attribute).set(value);
        return this;
    }

    private String get(AttributeDefinition<String> attribute) {
        return attributes.attribute(attribute).get();
    }

    private void expect(AttributeDefinition<String> attribute, String one, String other) {
        if (!Set.of(one, other).contains(get(attribute))) {
            throw wrong(attribute, get(attribute), "expected " + one + " or " + other, null);
        }
    }

    private void check(AttributeDefinition<String> attribute,
            java.util.function.Consumer<String> reader) {
        String value = get(attribute);
        try {
            reader.accept(value);
        } catch (IllegalArgumentException mistake) {
            throw wrong(attribute, value, mistake.getMessage(), mistake);
        }
    }

    private static CacheConfigurationException wrong(AttributeDefinition<String> attribute,
            String value, String why, Exception cause) {
        return new CacheConfigurationException(
                "entresol-store: " + attribute.name() + " is '" + value + "': " + why, cause);
    }
}
