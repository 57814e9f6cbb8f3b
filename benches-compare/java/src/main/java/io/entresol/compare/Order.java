package io.entresol.compare;

import java.io.IOException;
import java.util.SplittableRandom;
import org.infinispan.protostream.FileDescriptorSource;
import org.infinispan.protostream.GeneratedSchema;
import org.infinispan.protostream.ProtobufTagMarshaller;
import org.infinispan.protostream.SerializationContext;

/**
 * A value of a kilobyte, three of whose fields are indexed.
 *
 * @param name as of no other
 * @param price of which many have one
 * @param buyer a number
 * @param remark what is not indexed
 */
record Order(String name, double price, long buyer, String remark) {
    /** As its schema names it. */
    static final String TYPE = "shop.Order";
    private static final int REMARK_BYTES = 1_000;

    /** The one of a number; the same each time. */
    static Order of(int number) {
        SplittableRandom random = new SplittableRandom(number);
        StringBuilder remark = new StringBuilder(REMARK_BYTES);
        while (remark.length() < REMARK_BYTES) {
            remark.append((char) ('a' + random.nextInt(26)));
        }
        return new Order("order " + number, random.nextInt(100_000) / 100.0,
                random.nextInt(1_000_000), remark.toString());
    }

    /** What Infinispan is told of it. */
    static final class Schema implements GeneratedSchema {
        @Override
        public String getProtoFileName() {
            return "shop.proto";
        }

        @Override
        public String getProtoFile() {
            return """
                    package shop;
                    /** @Indexed */
                    message Order {
                      /** @Basic(sortable = true) */
                      optional string name = 1;
                      /** @Basic(sortable = true) */
                      optional double price = 2;
                      /** @Basic(projectable = true) */
                      optional int64 buyer = 3;
                      optional string remark = 4;
                    }
                    """;
        }

        @Override
        public void registerSchema(SerializationContext context) {
            context.registerProtoFiles(
                    FileDescriptorSource.fromString(getProtoFileName(), getProtoFile()));
        }

        @Override
        public void registerMarshallers(SerializationContext context) {
            context.registerMarshaller(new Bytes());
        }
    }

    private static final class Bytes implements ProtobufTagMarshaller<Order> {
        @Override
        public Class<Order> getJavaClass() {
            return Order.class;
        }

        @Override
        public String getTypeName() {
            return TYPE;
        }

        @Override
        public Order read(ReadContext context) throws IOException {
            throw new IOException("nobody asks for one");
        }

        @Override
        public void write(WriteContext context, Order order) throws IOException {
            var writer = context.getWriter();
            writer.writeString(1, order.name);
            writer.writeDouble(2, order.price);
            writer.writeInt64(3, order.buyer);
            writer.writeString(4, order.remark);
        }
    }
}
