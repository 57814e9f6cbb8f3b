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
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.util.ByteQuantity;
import org.infinispan.commons.util.TimeQuantity;
import org.infinispan.configuration.cache.AbstractStoreConfigurationBuilder;
import org.infinispan.configuration.cache.PersistenceConfigurationBuilder;

/** Builds the configuration of a flash store. */
public class EntresolStoreConfigurationBuilder extends AbstractStoreConfigurationBuilder<
        EntresolStoreConfiguration, EntresolStoreConfigurationBuilder> {
    private static final String A_SIZE = "a size such as 512MiB or 10GiB";
    private static final String A_TIME = "a time such as 30s or 5m";

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
        check(CAPACITY, text -> ByteQuantity.parse(text) > 0, A_SIZE);
        check(MEMORY, text -> ByteQuantity.parse(text) > 0, A_SIZE);
        try {
            Durability.parse(get(DURABILITY));
        } catch (IllegalArgumentException mistake) {
            throw wrong(DURABILITY, mistake.getMessage(), mistake);
        }
        check(COMPRESSION, name -> isNamed(Compression.values(), name), words(Compression.values()));
        check(RECOVERY_TIMEOUT, text -> TimeQuantity.valueOf(text).longValue() >= 0, A_TIME);
        check(RECOVERY_MISSING, name -> isNamed(MissingMembers.values(), name),
                words(MissingMembers.values()));
        check(SELECTION, Set.of("search", "stripe")::contains, "search or stripe");
        check(RECOVERY, Set.of("true", "false")::contains, "true or false");
        if (get(SELECTION).equals("stripe") && get(DEVICES) == null) {
            throw wrong(SELECTION, "expected devices, all of which it uses", null);
        }
        if (get(DEVICES) != null && get(PATH) != null) {
            throw wrong(PATH, "expected either devices or path, not both", null);
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

    private void check(AttributeDefinition<String> attribute, Predicate<String> isRight,
            String expected) {
        IllegalArgumentException cause = null;
        try {
            if (isRight.test(get(attribute))) {
                return;
            }
        } catch (IllegalArgumentException mistake) {
            cause = mistake;
        }
        throw wrong(attribute, "expected " + expected, cause);
    }

    private static boolean isNamed(Enum<?>[] all, String name) {
        return Stream.of(all).anyMatch(each -> each.name().equalsIgnoreCase(name));
    }

    /** Of three, as all of them have. */
    private static String words(Enum<?>[] all) {
        List<String> names = Stream.of(all)
                .map(each -> each.name().toLowerCase(Locale.ROOT)).toList();
        return names.get(0) + ", " + names.get(1) + " or " + names.get(2);
    }

    private CacheConfigurationException wrong(AttributeDefinition<String> attribute, String why,
            Exception cause) {
        return new CacheConfigurationException("entresol-store: " + attribute.name() + " is '"
                + get(attribute) + "': " + why, cause);
    }
}
