package io.entresol.infinispan;

import org.infinispan.commons.configuration.io.ConfigurationWriter;
import org.infinispan.commons.util.Version;
import org.infinispan.configuration.serializing.AbstractStoreSerializer;
import org.infinispan.configuration.serializing.ConfigurationSerializer;

/** Writes a configuration as the parser reads it, which servers do for caches made at run time. */
public class EntresolStoreConfigurationSerializer extends AbstractStoreSerializer
        implements ConfigurationSerializer<EntresolStoreConfiguration> {
    @Override
    public void serialize(ConfigurationWriter writer, EntresolStoreConfiguration configuration) {
        writer.writeStartElement(Element.ENTRESOL_STORE);
        writer.writeDefaultNamespace(
                EntresolStoreConfigurationParser.NAMESPACE + Version.getMajorMinor());
        configuration.attributes().write(writer);
        writeCommonStoreSubAttributes(writer, configuration);
        writeCommonStoreElements(writer, configuration);
        writer.writeEndElement();
    }
}
