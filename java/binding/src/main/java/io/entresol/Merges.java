package io.entresol;

import io.entresol.Pages.Page;
import io.entresol.heap.engine.NativeTables;
import java.lang.ref.Reference;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The thread that merges ask for folds: it takes a leaf's rows, calls the function of their table,
 * and brings the answers. It starts with the first function and ends with the store. Whatever a
 * function throws becomes a sentence.
 */
final class Merges {
    private static final int WORDS_BYTES = 8 * Long.BYTES;
    private static final int HEAD_BYTES = 2 * Integer.BYTES;
    private static final int ANSWERS = 1;
    private static final int REFUSAL = 2;
    private static final int ANNOUNCEMENT = 3;

    private final Engine engine;
    private final Pages pages;
    private final ConcurrentHashMap<Long, Folding> foldings = new ConcurrentHashMap<>();
    private long last;
    private volatile Thread thread;

    /** A function and whose it is. */
    private record Folding(String table, MergeFunction function) {
    }

    Merges(Engine engine, Pages pages) {
        this.engine = engine;
        this.pages = pages;
    }

    /** The number of a function, which merges may ask for from now on. */
    synchronized long add(String table, MergeFunction function) {
        foldings.put(++last, new Folding(table, function));
        if (thread == null) {
            announce();
            Thread started = new Thread(this::answer, "entresol merges");
            started.setDaemon(true);
            thread = started;
            started.start();
        }
        return last;
    }

    /** Merges wait for the thread from now on, which may take a while to come. */
    private void announce() {
        Page words = pages.take(WORDS_BYTES);
        for (int word = 0; word < WORDS_BYTES; word += Long.BYTES) {
            words.setLong(word, word == Long.BYTES ? ANNOUNCEMENT : 0);
        }
        try {
            StoreException.checked(
                    NativeTables.tablesFold(engine.address(), words.address(0)));
        } finally {
            Reference.reachabilityFence(engine);
        }
        pages.give(words);
    }

    /** Whether the calling thread is the one of merges. */
    boolean isCaller() {
        return Thread.currentThread() == thread;
    }

    private void answer() {
        Page words = pages.take(WORDS_BYTES);
        Answers answers = new Answers(pages.take(Pages.BYTES));
        words.setLong(0, 0);
        words.setLong(Long.BYTES, 0);
        try {
            while (true) {
                words.setLong(2 * Long.BYTES, answers.page.address(0));
                words.setLong(3 * Long.BYTES, answers.end);
                long rows = StoreException.checked(
                        NativeTables.tablesFold(engine.address(), words.address(0)));
                if (rows == 0) {
                    return;
                }
                Folding folding = foldings.get(words.longWord(6 * Long.BYTES));
                words.setLong(Long.BYTES, answers.of(folding, words, (int) rows));
            }
        } finally {
            Reference.reachabilityFence(engine);
        }
    }

    /** What is brought back. */
    private final class Answers {
        private Page page;
        private int end;

        Answers(Page page) {
            this.page = page;
        }

        /** Answers a question; with what kind of bytes. */
        int of(Folding folding, Page words, int rows) {
            end = 0;
            try {
                int length = (int) words.longWord(5 * Long.BYTES);
                // A copy: what a function keeps of it by mistake stays readable.
                Page question = pages.take(length);
                question.set(0, words.longWord(4 * Long.BYTES), length);
                TableRow row = new TableRow();
                for (int index = 0, at = 0; index < rows; index++) {
                    at = row.setRecord(question, at);
                    add(folding.function().fold(row));
                }
                pages.give(question);
                return ANSWERS;
            } catch (Throwable thrown) {
                end = 0;
                String sentence = thrown + " (merge function of " + folding.table() + ")";
                byte[] bytes = sentence.getBytes(StandardCharsets.UTF_8);
                reserve(bytes.length);
                end = page.set(0, bytes);
                return REFUSAL;
            }
        }

        private void add(byte[] value) {
            boolean keeps = value == MergeFunction.KEEP;
            int length = value == null ? 0 : value.length;
            reserve(HEAD_BYTES + length);
            page.setWord(end, value == null ? 2 : keeps ? 0 : 1);
            page.setWord(end + Integer.BYTES, length);
            end += HEAD_BYTES;
            if (length > 0) {
                end = page.set(end, value);
            }
        }

        /** Makes room for so many bytes more. */
        private void reserve(int bytes) {
            if (bytes > page.bytes() - end) {
                Page larger = pages.take(Math.max(2L * page.bytes(), (long) end + bytes));
                larger.set(0, page.address(0), end);
                page = larger;
            }
        }
    }
}
