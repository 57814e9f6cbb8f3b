package io.entresol.infinispan;

import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.infinispan.commons.configuration.attributes.AttributeDefinition;
import org.infinispan.commons.configuration.io.ConfigurationReader;
import org.infinispan.configuration.parsing.CacheParser;
import org.infinispan.configuration.parsing.ConfigurationBuilderHolder;
import org.infinispan.configuration.parsing.ConfigurationParser;
import org.infinispan.configuration.parsing.Namespace;
import org.infinispan.configuration.parsing.ParseUtils;

/** Reads {@code <entresol-store xmlns="urn:infinispan:config:store:entresol:16.0" …>}. */
@Namespace(root = "entresol-store")
@Namespace(uri = EntresolStoreConfigurationParser.NAMESPACE + "*", root = "entresol-store")
public class EntresolStoreConfigurationParser implements ConfigurationParser {
    static final String NAMESPACE = "urn:infinispan:config:store:entresol:";

    private static final Map<String, AttributeDefinition<String>> ATTRIBUTES = Stream.of(
            EntresolStoreConfiguration.DEVICES, EntresolStoreConfiguration.SELECTION,
            EntresolStoreConfiguration.PATH, EntresolStoreConfiguration.CAPACITY,
            EntresolStoreConfiguration.MEMORY, EntresolStoreConfiguration.DURABILITY,
            EntresolStoreConfiguration.COMPRESSION, EntresolStoreConfiguration.RECOVERY,
            EntresolStoreConfiguration.RECOVERY_TIMEOUT,
            EntresolStoreConfiguration.RECOVERY_MISSING)
            .collect(Collectors.toMap(AttributeDefinition::name, Function.identity()));

    @Override
    public void readElement(ConfigurationReader reader, ConfigurationBuilderHolder holder) {
        if (!reader.getLocalName().equals(Element.ENTRESOL_STORE.toString())) {
            throw ParseUtils.unexpectedElement(reader);
        }
        EntresolStoreConfigurationBuilder builder = holder.getCurrentConfigurationBuilder()
                .persistence().addStore(EntresolStoreConfigurationBuilder.class);
        for (int index = 0; index < reader.getAttributeCount(); index++) {
            ParseUtils.requireNoNamespaceAttribute(reader, index);
            AttributeDefinition<String> own = ATTRIBUTES.get(reader.getAttributeName(index));
            if (own != null) {
                builder.set(own, reader.getAttributeValue(index));
            } else {
                CacheParser.parseStoreAttribute(reader, index, builder);
            }
        }
        while (reader.inTag()) {
            CacheParser.parseStoreElement(reader, builder);
        }
    }

    @Override
    public Namespace[] getNamespaces() {
        return ParseUtils.getNamespaceAnnotations(getClass());
    }
}
