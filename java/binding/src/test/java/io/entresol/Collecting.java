package io.entresol;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Flow;

/** A subscriber that keeps its elements, and asks for a fixed number at a time. */
final class Collecting implements Flow.Subscriber<Entry> {
    private final long step;
    private final List<Entry> entries = new ArrayList<>();
    private boolean ended;
    private Throwable failure;
    Flow.Subscription subscription;

    /** With 0, who made it asks. */
    Collecting(long step) {
        this.step = step;
    }

    /** All that a publisher has. */
    static List<Entry> all(Flow.Publisher<Entry> publisher, long step) {
        Collecting collecting = new Collecting(step);
        publisher.subscribe(collecting);
        collecting.awaitEnd();
        if (collecting.failure() != null) {
            throw new AssertionError(collecting.failure());
        }
        return collecting.entries();
    }

    @Override
    public void onSubscribe(Flow.Subscription given) {
        subscription = given;
        if (step > 0) {
            given.request(step);
        }
    }

    @Override
    public void onNext(Entry entry) {
        boolean wants;
        synchronized (this) {
            entries.add(entry);
            notifyAll();
            wants = step > 0 && entries.size() % step == 0;
        }
        if (wants) {
            subscription.request(step);
        }
    }

    @Override
    public synchronized void onError(Throwable thrown) {
        failure = thrown;
        ended = true;
        notifyAll();
    }

    @Override
    public synchronized void onComplete() {
        ended = true;
        notifyAll();
    }

    synchronized void await(int count) {
        while (entries.size() < count && !ended) {
            pause();
        }
    }

    synchronized void awaitEnd() {
        while (!ended) {
            pause();
        }
    }

    synchronized List<Entry> entries() {
        return List.copyOf(entries);
    }

    synchronized boolean ended() {
        return ended;
    }

    synchronized Throwable failure() {
        return failure;
    }

    private void pause() {
        try {
            wait();
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }
}
