package io.entresol.compare;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.DoublePoint;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.LongPoint;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.SortedDocValuesField;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.NumericUtils;
import org.infinispan.protostream.ProtobufParser;
import org.infinispan.protostream.ProtobufUtil;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.protostream.TagHandler;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.protostream.descriptors.FieldDescriptor;
import org.infinispan.protostream.descriptors.GenericDescriptor;

/** Entries in Java's heap, as they are stored, into an index of Lucene's by all processors. */
final class BareLucene {
    /** As the grid's caches have it. */
    private static final int BUFFER_MB = 32;

    private final Descriptor type;
    private final List<byte[]> stored;

    /** So many, that are made now. */
    BareLucene(int entries) throws IOException {
        SerializationContext context = ProtobufUtil.newSerializationContext();
        new Order.Schema().register(context);
        type = context.getMessageDescriptor(Order.TYPE);
        stored = new ArrayList<>(entries);
        for (int number = 0; number < entries; number++) {
            stored.add(ProtobufUtil.toByteArray(context, Order.of(number)));
        }
    }

    /** Indexes them. */
    void index() {
        int threads = Runtime.getRuntime().availableProcessors();
        ExecutorService workers = Executors.newFixedThreadPool(threads);
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory();
                IndexWriter writer = new IndexWriter(directory,
                        new IndexWriterConfig().setRAMBufferSizeMB(BUFFER_MB))) {
            AtomicInteger next = new AtomicInteger();
            List<CompletableFuture<Void>> all = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                all.add(CompletableFuture.runAsync(() -> addAll(writer, next), workers));
            }
            CompletableFuture.allOf(all.toArray(CompletableFuture[]::new)).join();
            try (DirectoryReader reader = DirectoryReader.open(writer)) {
                if (reader.numDocs() != stored.size()) {
                    throw new IllegalStateException("the index has " + reader.numDocs());
                }
            }
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        } finally {
            workers.shutdown();
        }
    }

    private void addAll(IndexWriter writer, AtomicInteger next) {
        for (int at = next.getAndIncrement(); at < stored.size(); at = next.getAndIncrement()) {
            add(writer, type, "k" + at, stored.get(at));
        }
    }

    private static void add(IndexWriter writer, Descriptor type, String key, byte[] bytes) {
        Document document = new Document();
        document.add(new StringField("id", key, Field.Store.YES));
        document.add(new StringField("segment", String.valueOf(key.hashCode() & 255),
                Field.Store.NO));
        try {
            ProtobufParser.INSTANCE.parse(new Fields(document), type, bytes);
            writer.addDocument(document);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    /** Fields of Lucene's for those of a message. */
    private record Fields(Document document) implements TagHandler {
        @Override
        public void onStart(GenericDescriptor descriptor) {
            // The document is there.
        }

        @Override
        public void onTag(int number, FieldDescriptor field, Object value) {
            switch (number) {
                case 1 -> {
                    document.add(new StringField("name", (String) value, Field.Store.NO));
                    document.add(new SortedDocValuesField("name", new BytesRef((String) value)));
                }
                case 2 -> {
                    document.add(new DoublePoint("price", (Double) value));
                    document.add(new NumericDocValuesField("price",
                            NumericUtils.doubleToSortableLong((Double) value)));
                }
                case 3 -> {
                    document.add(new LongPoint("buyer", (Long) value));
                    document.add(new StoredField("buyer", (Long) value));
                }
                default -> { }
            }
        }

        @Override
        public void onStartNested(int number, FieldDescriptor field) {
            // There is none.
        }

        @Override
        public void onEndNested(int number, FieldDescriptor field) {
            // There is none.
        }

        @Override
        public void onEnd() {
            // The document is whole.
        }
    }
}
