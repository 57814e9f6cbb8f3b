package io.entresol.grid;

import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.distribution.ch.impl.RESPHashFunctionPartitioner;

/** How a cache keeps keys and values. */
public enum Encoding {
    /** Objects and JSON of known schemas, which can be queried. */
    PROTOSTREAM {
        @Override
        void apply(ConfigurationBuilder builder) {
            builder.encoding().mediaType(MediaType.APPLICATION_PROTOSTREAM);
        }
    },
    /** Bytes, as they come. */
    BYTES {
        @Override
        void apply(ConfigurationBuilder builder) {
            builder.encoding().mediaType(MediaType.APPLICATION_OCTET_STREAM);
        }
    },
    /** Texts, which memcached and REST write. */
    TEXT {
        @Override
        void apply(ConfigurationBuilder builder) {
            builder.encoding().mediaType(MediaType.TEXT_PLAIN);
        }
    },
    /** Bytes, on the nodes that clients of a Redis cluster look for them at. */
    RESP {
        @Override
        void apply(ConfigurationBuilder builder) {
            builder.encoding().mediaType(MediaType.APPLICATION_OCTET_STREAM);
            builder.clustering().hash().keyPartitioner(new RESPHashFunctionPartitioner());
        }
    };

    abstract void apply(ConfigurationBuilder builder);
}
