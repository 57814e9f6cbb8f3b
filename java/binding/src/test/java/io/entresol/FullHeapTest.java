package io.entresol;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletionException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A JVM whose heap is full, and a store whose answers need room in it. */
class FullHeapTest {
    private static final int LARGE = 20 << 20;
    private static final int PIECE = 128 << 10;
    /** Of the pieces that fill the heap: room for what others need, and not for the value. */
    private static final int SPARED = 32;

    @TempDir
    Path folder;

    /** The thread that reaps ended by it, and with that all that anybody asked of the store. */
    @Test
    void anAnswerThatJavaHasNoRoomForFailsAloneAndIsHadOnceThereIsRoom() throws Exception {
        assertEquals(List.of("BUSY", "BUSY", "small", "equal", "2 entries"), run());
    }

    private List<String> run() throws IOException, InterruptedException {
        Process child = ChildJvm.start(List.of("-Xmx128m", "-XX:+UseSerialGC"), Child.class,
                folder.resolve("data").toString());
        String said = new String(child.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
        child.waitFor();
        return said.lines().toList();
    }

    /** Says what it gets with a full heap, and then without. */
    static final class Child {
        private Child() {
        }

        public static void main(String[] arguments) {
            byte[] large = "large".getBytes(StandardCharsets.US_ASCII);
            byte[] small = "small".getBytes(StandardCharsets.US_ASCII);
            try (Store store = Store.open(StoreOptions.on(Path.of(arguments[0]))
                    .capacity(256 << 20).memory(64 << 20))) {
                store.put(large, value());
                store.put(small, small);
                List<byte[]> filler = fill();
                System.out.println(tried(() -> store.getAsync(large).toCompletableFuture().join()));
                System.out.println(tried(() -> scanned(store)));
                System.out.println(new String(
                        store.getAsync(small).toCompletableFuture().join().orElseThrow().value(),
                        StandardCharsets.US_ASCII));
                filler.clear();
                System.out.println(
                        Arrays.equals(value(), store.get(large)) ? "equal" : "different");
                System.out.println(scanned(store) + " entries");
            }
        }

        private static int scanned(Store store) {
            Collecting all = new Collecting(Long.MAX_VALUE);
            store.scan().subscribe(all);
            all.awaitEnd();
            if (all.failure() != null) {
                throw (StoreException) all.failure();
            }
            return all.entries().size();
        }

        private static String tried(Runnable attempt) {
            try {
                attempt.run();
                return "there was room";
            } catch (CompletionException | StoreException failure) {
                Throwable cause = failure instanceof StoreException ? failure : failure.getCause();
                return ((StoreException) cause).kind().toString();
            }
        }

        private static byte[] value() {
            byte[] value = new byte[LARGE];
            new Random(1).nextBytes(value);
            return value;
        }

        private static List<byte[]> fill() {
            List<byte[]> filler = new ArrayList<>();
            try {
                while (true) {
                    filler.add(new byte[PIECE]);
                }
            } catch (OutOfMemoryError full) {
                filler.subList(filler.size() - SPARED, filler.size()).clear();
            }
            return filler;
        }
    }
}
