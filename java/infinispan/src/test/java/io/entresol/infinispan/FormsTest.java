package io.entresol.infinispan;

import static org.testng.Assert.assertEquals;
import static org.testng.Assert.expectThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.infinispan.commons.io.ByteBufferFactory;
import org.infinispan.commons.io.ByteBufferFactoryImpl;
import org.infinispan.commons.marshall.Marshaller;
import org.infinispan.commons.marshall.WrappedByteArray;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.container.versioning.NumericVersion;
import org.infinispan.manager.DefaultCacheManager;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.metadata.EmbeddedMetadata;
import org.infinispan.metadata.Metadata;
import org.infinispan.metadata.impl.PrivateMetadata;
import org.infinispan.persistence.spi.MarshallableEntry;
import org.infinispan.persistence.spi.MarshallableEntryFactory;
import org.infinispan.persistence.spi.PersistenceException;
import org.infinispan.test.TestingUtil;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;
import org.testng.annotations.DataProvider;
import org.testng.annotations.Test;

/** The form of values on flash. */
@Test(groups = "unit", testName = "infinispan.FormsTest")
public class FormsTest {
    private static final long CREATED = 1_000;
    private static final long USED = 2_000;
    private static final byte[] BYTES = {1, 2, 3, 0, -1};

    private final ByteBufferFactory buffers = new ByteBufferFactoryImpl();
    private EmbeddedCacheManager container;
    private Marshaller marshaller;
    private MarshallableEntryFactory<Object, Object> factory;

    @BeforeClass(alwaysRun = true)
    @SuppressWarnings("unchecked")
    protected void start() {
        container = new DefaultCacheManager();
        container.defineConfiguration("any", new ConfigurationBuilder().build());
        marshaller = TestingUtil.extractPersistenceMarshaller(container);
        factory = TestingUtil.extractComponent(container.getCache("any"),
                MarshallableEntryFactory.class);
    }

    @AfterClass(alwaysRun = true)
    protected void stop() throws IOException {
        container.close();
    }

    @DataProvider
    Object[][] values() {
        return new Object[][] {
            {StoredEntry.Form.WRAPPED, new WrappedByteArray(BYTES)},
            {StoredEntry.Form.WRAPPED, WrappedByteArray.EMPTY_BYTES},
            {StoredEntry.Form.BYTES, BYTES},
            {StoredEntry.Form.MARSHALLED, "text"},
            {StoredEntry.Form.MARSHALLED, 7L},
        };
    }

    @Test(dataProvider = "values")
    public void anEntryComesBackAsItWas(StoredEntry.Form form, Object value) {
        Metadata metadata = new EmbeddedMetadata.Builder().version(new NumericVersion(7)).build();
        PrivateMetadata internal = new PrivateMetadata.Builder()
                .entryVersion(new NumericVersion(9)).build();
        StoredEntry stored = StoredEntry.of(
                factory.create("key", value, metadata, internal, CREATED, USED));
        assertEquals(stored.form(), form);
        MarshallableEntry<Object, Object> back = read(joined(stored.encode()));
        assertSame(back.getValue(), value);
        assertEquals(back.getMetadata().version(), new NumericVersion(7));
        assertEquals(back.getInternalMetadata(), internal);
        assertEquals(back.created(), stored.created());
        assertEquals(back.lastUsed(), stored.lastUsed());
    }

    public void bytesOfClientsLieOnFlashAsTheyAre() {
        StoredEntry stored = StoredEntry.of(factory.create("key", new WrappedByteArray(BYTES)));
        assertEquals(stored.value(), ByteBuffer.wrap(BYTES));
    }

    /** They were made an object, to see what it is, and bytes again. */
    public void bytesThatAStoreHasAreTakenAsTheyAre() {
        org.infinispan.commons.io.ByteBuffer none = null;
        StoredEntry stored = StoredEntry.of(factory.create("key",
                buffers.newByteBuffer(BYTES, 1, 3), none, none, CREATED, USED));
        assertEquals(stored.form(), StoredEntry.Form.MARSHALLED);
        assertEquals(stored.value(), ByteBuffer.wrap(BYTES, 1, 3));
    }

    /** What was on flash before bytes were kept as they are. */
    public void marshalledBytesAreReadAsBefore() throws IOException, InterruptedException {
        for (Object value : new Object[] {new WrappedByteArray(BYTES), BYTES}) {
            byte[] marshalled = marshaller.objectToByteBuffer(value);
            ByteBuffer old = ByteBuffer.allocate(37 + marshalled.length).put((byte) 1)
                    .putLong(CREATED).putLong(USED).putLong(-1)
                    .putInt(marshalled.length).putInt(0).putInt(0).put(marshalled);
            assertSame(read(old.array()).getValue(), value);
        }
    }

    public void whatNoCacheWroteIsAnErrorThatSaysSo() {
        for (byte[] foreign : new byte[][] {{}, new byte[37], {4}, new byte[36]}) {
            expectThrows(PersistenceException.class, () -> StoredEntry.decode(foreign));
        }
        byte[] later = new byte[37];
        later[0] = 4;
        String told = expectThrows(PersistenceException.class, () -> StoredEntry.decode(later))
                .getMessage();
        assertEquals(told, "the device holds a value of 37 bytes that no cache wrote;"
                + " expected 37 or more, of form 1 to 3");
    }

    private MarshallableEntry<Object, Object> read(byte[] bytes) {
        return StoredEntry.decode(bytes).toEntry("key", factory, buffers, marshaller);
    }

    private static void assertSame(Object found, Object expected) {
        if (expected instanceof byte[] bytes) {
            assertEquals(Arrays.toString((byte[]) found), Arrays.toString(bytes));
        } else {
            assertEquals(found, expected);
        }
    }

    private static byte[] joined(List<ByteBuffer> parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (ByteBuffer part : parts) {
            byte[] bytes = new byte[part.remaining()];
            part.get(bytes);
            all.writeBytes(bytes);
        }
        return all.toByteArray();
    }
}
