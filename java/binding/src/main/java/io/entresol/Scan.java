package io.entresol;

import io.entresol.heap.engine.NativeStore;
import java.util.ArrayDeque;
import java.util.concurrent.Flow;

/** A publisher of entries that reads a page when a subscriber asks for more than it holds. */
final class Scan implements Flow.Publisher<Entry> {
    /** Entries asked for at a time. */
    private static final int PAGE_ENTRIES = 256;

    private final Engine engine;
    private final int space;
    private final int[] partitions;
    private final Entries.Contents contents;

    Scan(Engine engine, int space, int[] partitions, Entries.Contents contents) {
        this.engine = engine;
        this.space = space;
        this.partitions = partitions;
        this.contents = contents;
    }

    @Override
    public void subscribe(Flow.Subscriber<? super Entry> subscriber) {
        long scan;
        try {
            boolean keysOnly = contents == Entries.Contents.KEYS;
            scan = engine.scan(space, partitions, keysOnly);
        } catch (StoreException failure) {
            subscriber.onSubscribe(new Nothing());
            subscriber.onError(failure);
            return;
        }
        new Course(scan, subscriber).begin();
    }

    /** The subscription of one that failed at once. */
    private static final class Nothing implements Flow.Subscription {
        @Override
        public void request(long count) {
            // There is nothing to ask for.
        }

        @Override
        public void cancel() {
            // There is nothing to end.
        }
    }

    /**
     * One subscriber's way through the entries. Whoever finds it idle delivers; others leave word
     * under the lock. Signals are given without the lock.
     */
    private final class Course implements Flow.Subscription {
        private final long scan;
        private final Flow.Subscriber<? super Entry> subscriber;
        private final ArrayDeque<Entry> held = new ArrayDeque<>();
        private long demand;
        private boolean reading;
        private boolean delivering;
        private boolean ended;
        private boolean released;
        private boolean cancelled;
        private Throwable failure;

        Course(long scan, Flow.Subscriber<? super Entry> subscriber) {
            this.scan = scan;
            this.subscriber = subscriber;
        }

        void begin() {
            subscriber.onSubscribe(this);
            // A scan of nothing ends without being asked.
            deliver();
        }

        @Override
        public void request(long count) {
            synchronized (this) {
                if (count <= 0) {
                    failure = new IllegalArgumentException(
                            "a subscriber asked for " + count + " entries; expected at least 1");
                    ended = true;
                    held.clear();
                } else {
                    demand = demand + count < 0 ? Long.MAX_VALUE : demand + count;
                }
            }
            deliver();
        }

        @Override
        public synchronized void cancel() {
            cancelled = true;
            held.clear();
            releaseIfIdle();
        }

        private void deliver() {
            synchronized (this) {
                if (delivering) {
                    return;
                }
                delivering = true;
            }
            while (true) {
                Entry next;
                boolean reads = false;
                boolean last = false;
                synchronized (this) {
                    next = demand > 0 && !cancelled ? held.poll() : null;
                    if (next != null) {
                        demand -= demand == Long.MAX_VALUE ? 0 : 1;
                    } else {
                        last = finishes();
                        delivering = last;
                        reads = !last && startsToRead();
                    }
                }
                if (last) {
                    break;
                }
                if (next == null) {
                    if (reads) {
                        read();
                    }
                    return;
                }
                subscriber.onNext(next);
            }
            if (failure != null) {
                subscriber.onError(failure);
            } else {
                subscriber.onComplete();
            }
        }

        /** Whether the last signal is due; it is given once, since nobody delivers after it. */
        private boolean finishes() {
            boolean last = ended && held.isEmpty() && !cancelled;
            if (last) {
                cancelled = true;
                releaseIfIdle();
            }
            return last;
        }

        private boolean startsToRead() {
            boolean starts = !reading && !ended && !cancelled && demand > 0;
            reading |= starts;
            return starts;
        }

        private void read() {
            try {
                engine.page(scan, PAGE_ENTRIES).whenComplete(this::take);
            } catch (StoreException refused) {
                take(null, refused);
            }
        }

        private void take(Outcome page, Throwable refused) {
            synchronized (this) {
                reading = false;
                if (refused != null) {
                    failure = refused;
                    ended = true;
                } else {
                    if (!cancelled) {
                        held.addAll(page.page());
                    }
                    ended = page.number() == 0;
                    if (page.expires() > 0) {
                        // The sound ones come first, then what is lost is said.
                        failure = new StoreException(StoreException.Kind.CORRUPT, page.expires()
                                + " entries are damaged; the first: " + page.sentence());
                    }
                }
                releaseIfIdle();
            }
            deliver();
        }

        private void releaseIfIdle() {
            if (cancelled && !reading && !released) {
                released = true;
                NativeStore.scanClose(scan);
            }
        }
    }
}
