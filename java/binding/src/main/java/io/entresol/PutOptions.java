package io.entresol;

/** How an entry is put; immutable, each method gives a changed copy. */
public final class PutOptions {
    /** Always, without an end, at the store's durability. */
    public static final PutOptions DEFAULT = new PutOptions(0, 0, 0, 0, 0, 0, 0);

    private static final int ABSENT = 1;
    private static final int PRESENT = 2;
    private static final int VERSION = 3;

    final long expires;
    final long idleSeconds;
    final int condition;
    final long version;
    final int label;
    final int level;
    final long period;

    private PutOptions(long expires, long idleSeconds, int condition, long version, int label,
            int level, long period) {
        this.expires = expires;
        this.idleSeconds = idleSeconds;
        this.condition = condition;
        this.version = version;
        this.label = label;
        this.level = level;
        this.period = period;
    }

    /** The entry is absent from that moment on, in milliseconds since 1970; 0: it has no end. */
    public PutOptions expires(long at) {
        Entries.checkEnd(at);
        return new PutOptions(at, idleSeconds, condition, version, label, level, period);
    }

    /** The entry is absent once it was neither read nor written for so many seconds; 0: never. */
    public PutOptions idle(int seconds) {
        if (seconds < 0) {
            throw new IllegalArgumentException(
                    "an idle time of " + seconds + " s; expected 0 or more");
        }
        return new PutOptions(expires, seconds, condition, version, label, level, period);
    }

    /** Only if the key has no entry. */
    public PutOptions ifAbsent() {
        return new PutOptions(expires, idleSeconds, ABSENT, 0, label, level, period);
    }

    /** Only if the key has an entry. */
    public PutOptions ifPresent() {
        return new PutOptions(expires, idleSeconds, PRESENT, 0, label, level, period);
    }

    /** Only if the key's entry is of that version. */
    public PutOptions ifVersion(long expected) {
        return new PutOptions(expires, idleSeconds, VERSION, expected, label, level, period);
    }

    /** A byte that travels with the value, 0 to 255. */
    public PutOptions label(int value) {
        if (value < 0 || value > 255) {
            throw new IllegalArgumentException("a label of " + value + "; expected 0 to 255");
        }
        return new PutOptions(expires, idleSeconds, condition, version, value, level, period);
    }

    /** Acknowledged at this durability, whatever that of the store is. */
    public PutOptions durability(Durability durability) {
        return new PutOptions(expires, idleSeconds, condition, version, label,
                durability.level, durability.milliseconds);
    }
}
