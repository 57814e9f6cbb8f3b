package com.intel.pmem.llpl.util;

import java.util.Iterator;

/** An iterator that holds something until it is closed or has no more elements. */
public interface AutoCloseableIterator<T> extends Iterator<T>, AutoCloseable {
    @Override
    void close();
}
