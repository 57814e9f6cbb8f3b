package io.entresol.compare;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * Stores of Infinispan's caches at the same work, in turns, each in a process and, where one can be
 * made, a memory cgroup of its own; prints the median of each figure.
 *
 * <pre>
 * Stores FOLDER [ENTRIES [SECONDS [ROUNDS [CAP_MIB [CONTESTANT,…]]]]]
 * </pre>
 */
public final class Stores {
    private static final Path CGROUPS = Path.of("/sys/fs/cgroup/memory");
    /** The status of a process that the kernel killed. */
    private static final int KILLED = 137;
    /** Last lines that are shown of who failed. */
    private static final int SAID = 12;
    private static final String HEAP = "-Xmx384m";
    /** The floor keeps all entries in the heap. */
    private static final String HEAP_OF_FLOOR = "-Xmx8g";

    private final Path folder;
    private final String entries;
    private final String seconds;
    private final long capMib;
    /** Of those that the first cap was too little for. */
    private final Map<Contestant, Long> caps = new EnumMap<>(Contestant.class);
    private final Map<String, Map<Contestant, List<Double>>> figures = new TreeMap<>();

    private Stores(Path folder, String entries, String seconds, long capMib) {
        this.folder = folder;
        this.entries = entries;
        this.seconds = seconds;
        this.capMib = capMib;
    }

    /** What the command line asks for; also a contestant's own process. */
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("--play")) {
            Turn.play(Contestant.valueOf(arguments[1]), Path.of(arguments[2]),
                    Integer.parseInt(arguments[3]), Double.parseDouble(arguments[4]));
            return;
        }
        Stores stores = new Stores(Path.of(arguments[0]), at(arguments, 1, "200000"),
                at(arguments, 2, "10"), Long.parseLong(at(arguments, 4, "704")));
        List<Contestant> contestants = new ArrayList<>();
        String names = at(arguments, 5, "floor,entresol,sifs,rocksdb").toUpperCase(Locale.ROOT);
        for (String name : names.split(",")) {
            contestants.add(Contestant.valueOf(name));
        }
        int rounds = Integer.parseInt(at(arguments, 3, "3"));
        for (int round = 0; round < rounds; round++) {
            for (int place = 0; place < contestants.size(); place++) {
                // Nobody is always the first.
                stores.play(contestants.get((place + round) % contestants.size()));
            }
        }
        stores.print(contestants);
    }

    private static String at(String[] arguments, int index, String otherwise) {
        return arguments.length > index ? arguments[index] : otherwise;
    }

    /** Plays a turn; who is killed for want of memory plays again with twice as much, twice at most. */
    private void play(Contestant contestant) throws IOException, InterruptedException {
        long cap = caps.getOrDefault(contestant, capMib);
        while (play(contestant, cap) == KILLED && cap < capMib << 2) {
            cap <<= 1;
            caps.put(contestant, cap);
        }
    }

    private int play(Contestant contestant, long cap) throws IOException, InterruptedException {
        Path place = Files.createTempDirectory(folder, "compare");
        try {
            boolean isFloor = contestant == Contestant.FLOOR;
            List<String> command = new ArrayList<>();
            Path group = isFloor ? null : cgroup(cap);
            if (group != null) {
                command.addAll(List.of("sh", "-c",
                        "echo $$ > " + group.resolve("cgroup.procs") + " && exec \"$@\"", "sh"));
            }
            command.addAll(List.of(System.getProperty("java.home") + "/bin/java",
                    isFloor ? HEAP_OF_FLOOR : HEAP, "-cp", System.getProperty("java.class.path"),
                    Stores.class.getName(), "--play", contestant.name(), place.toString(), entries,
                    seconds));
            Process process = new ProcessBuilder(command)
                    .redirectError(folder.resolve(contestant + ".log").toFile()).start();
            List<String> said;
            try (BufferedReader lines = new BufferedReader(
                    new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
                said = lines.lines().toList();
            }
            int status = process.waitFor();
            if (status == 0) {
                said.forEach(line -> add(contestant, line));
            } else {
                List<String> log = Files.readAllLines(folder.resolve(contestant + ".log"));
                System.out.printf("%s ended with status %d under %d MiB:%n%s%n", contestant, status,
                        cap, String.join("\n", log.subList(
                                Math.max(0, log.size() - SAID), log.size())));
            }
            return status;
        } finally {
            remove(place);
        }
    }

    private void add(Contestant contestant, String line) {
        String[] words = line.split(" ");
        if (words.length == 3 && !words[0].equals("warm")) {
            figures.computeIfAbsent(words[0] + " " + words[1], none -> new TreeMap<>())
                    .computeIfAbsent(contestant, none -> new ArrayList<>())
                    .add(Double.parseDouble(words[2]));
        }
    }

    private void print(List<Contestant> contestants) {
        System.out.printf("%-26s", "median of rounds");
        contestants.forEach(each -> System.out.printf("%12s", each.name().toLowerCase(Locale.ROOT)));
        System.out.println();
        figures.forEach((name, all) -> {
            System.out.printf("%-26s", name);
            for (Contestant each : contestants) {
                List<Double> found = all.getOrDefault(each, List.of());
                List<Double> sorted = found.stream().sorted().toList();
                System.out.printf("%12s", sorted.isEmpty() ? "-"
                        : String.format(Locale.ROOT, "%.1f", sorted.get(sorted.size() / 2)));
            }
            System.out.println();
        });
    }

    /** A cgroup with the cap, or none where none can be made. */
    private Path cgroup(long mib) {
        Path group = CGROUPS.resolve("entresol-compare");
        try {
            if (!Files.exists(group)) {
                Files.createDirectory(group);
            }
            Files.writeString(group.resolve("memory.limit_in_bytes"), "" + (mib << 20));
            return group;
        } catch (IOException refused) {
            System.out.println("no cap on memory: " + refused);
            return null;
        }
    }

    private static void remove(Path place) throws IOException {
        try (Stream<Path> files = Files.walk(place)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
