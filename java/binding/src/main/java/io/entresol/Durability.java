package io.entresol;

/** What an acknowledged write survives. */
public final class Durability {
    /** Lost with the process. */
    public static final Durability MEMORY = new Durability("memory", 1, 0);
    /** Survives the death of the process, as by {@code kill -9}, not of the machine. */
    public static final Durability PROCESS = new Durability("process", 2, 0);
    /** Handed to the device; what its volatile cache holds may be lost with power. */
    public static final Durability FLUSHED = new Durability("flushed", 3, 0);
    /** Survives power loss; concurrent writers share one sync. */
    public static final Durability SYNCED = new Durability("synced", 5, 0);

    final int level;
    final long milliseconds;
    private final String name;

    private Durability(String name, int level, long milliseconds) {
        this.name = name;
        this.level = level;
        this.milliseconds = milliseconds;
    }

    /** As {@link #PROCESS}, and synced at least every so many milliseconds. */
    public static Durability periodic(int milliseconds) {
        if (milliseconds < 1) {
            throw new IllegalArgumentException(
                    "a period of " + milliseconds + " ms; expected at least 1");
        }
        return new Durability("periodic:" + milliseconds, 4, milliseconds);
    }

    /** Reads what {@link #toString} gives, such as {@code periodic:100}. */
    public static Durability parse(String text) {
        for (Durability known : new Durability[] {MEMORY, PROCESS, FLUSHED, SYNCED}) {
            if (known.name.equals(text)) {
                return known;
            }
        }
        if (text.matches("periodic:[1-9][0-9]{0,8}(ms)?")) {
            return periodic(Integer.parseInt(text.replaceAll("[^0-9]", "")));
        }
        throw new IllegalArgumentException(
                "expected memory, process, flushed, periodic:MS or synced, found '" + text + "'");
    }

    /** As in options and configurations. */
    @Override
    public String toString() {
        return name;
    }
}
