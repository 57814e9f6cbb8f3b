package io.entresol.jdbc.internal.rows;

import java.util.Iterator;
import java.util.NoSuchElementException;

/** An iterator by one method, which gives null at the end. Closed, it is at its end. */
abstract class Steps<T> implements Iterator<T>, AutoCloseable {
    private T ahead;
    private boolean ended;

    protected abstract T step();

    /** Called once, at the end or when nobody wants the rest. */
    protected void end() {
        // Most have nothing to let go of.
    }

    @Override
    public boolean hasNext() {
        if (ahead == null && !ended) {
            ahead = step();
            if (ahead == null) {
                close();
            }
        }
        return ahead != null;
    }

    @Override
    public void close() {
        ahead = null;
        if (!ended) {
            ended = true;
            end();
        }
    }

    @Override
    public T next() {
        if (!hasNext()) {
            throw new NoSuchElementException("there are no more rows");
        }
        T given = ahead;
        ahead = null;
        return given;
    }
}
