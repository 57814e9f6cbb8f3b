package io.entresol.grid;

import io.entresol.infinispan.EntresolStoreConfiguration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.infinispan.configuration.cache.CacheMode;
import org.infinispan.configuration.cache.Configuration;

/**
 * Where a cache's entries are kept, and on how many nodes and sites: words separated by commas.
 *
 * @param words at most one of {@code ram} and {@code flash} (if none: flash), at most one of {@code
 *     partitioned} and {@code partitioned-with-backup} (if none: partitioned), and {@code
 *     two-sites}
 */
public record Template(Set<Word> words) {
    /** A word of a template. */
    public enum Word {
        RAM, FLASH, PARTITIONED, PARTITIONED_WITH_BACKUP, TWO_SITES;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT).replace('_', '-');
        }
    }

    /** Reads {@code flash,partitioned-with-backup} and the like. */
    public static Template parse(String text) {
        return parse("--template", text);
    }

    /** The same, of another option. */
    static Template parse(String option, String text) {
        Set<Word> words = new HashSet<>();
        for (String part : text.split(",", -1)) {
            Word word = Arrays.stream(Word.values())
                    .filter(each -> each.toString().equals(part.trim())).findFirst()
                    .orElseThrow(() -> wrong(option, text, "'" + part + "' is no template"));
            words.add(word);
        }
        refuseBoth(option, text, words, Word.RAM, Word.FLASH);
        refuseBoth(option, text, words, Word.PARTITIONED, Word.PARTITIONED_WITH_BACKUP);
        return new Template(words);
    }

    /** The template that would make such a cache. */
    static Template of(Configuration configuration) {
        boolean flash = configuration.persistence().stores().stream()
                .anyMatch(EntresolStoreConfiguration.class::isInstance);
        CacheMode mode = configuration.clustering().cacheMode();
        boolean backup = mode.isDistributed() ? configuration.clustering().hash().numOwners() > 1
                : mode.isClustered();
        Set<Word> words = EnumSet.of(flash ? Word.FLASH : Word.RAM,
                backup ? Word.PARTITIONED_WITH_BACKUP : Word.PARTITIONED);
        if (configuration.sites().hasBackups()) {
            words.add(Word.TWO_SITES);
        }
        return new Template(words);
    }

    boolean onFlash() {
        return !words.contains(Word.RAM);
    }

    /** On how many nodes of a site each entry is. */
    int owners() {
        return words.contains(Word.PARTITIONED_WITH_BACKUP) ? 2 : 1;
    }

    boolean onTwoSites() {
        return words.contains(Word.TWO_SITES);
    }

    /**
     * What a cache on so many nodes may lose of what it acknowledged, and what does not; empty if
     * nothing but for the loss of a disk. Where a node is gone Infinispan goes on without what that
     * alone had, and a node that comes back gives up whatever it does not own by then.
     */
    Optional<String> losses(int nodes, boolean recovering) {
        if (!onFlash() || nodes < 2 || recovering) {
            return Optional.empty();
        }
        String keeping = "; to keep all: --template flash," + Word.PARTITIONED_WITH_BACKUP
                + " --recovery";
        return Optional.of(owners() == 1
                ? "each entry is on one of " + nodes + " nodes: those of a node that is killed are"
                        + " lost, also once it is back, and so are entries where all nodes are"
                        + " killed; a node that has some stops with all others only" + keeping
                : "the loss of one node is made good by the others; where all " + nodes + " nodes"
                        + " are killed, entries may be lost" + keeping);
    }

    @Override
    public String toString() {
        return (onFlash() ? Word.FLASH : Word.RAM) + ","
                + (owners() == 2 ? Word.PARTITIONED_WITH_BACKUP : Word.PARTITIONED)
                + (onTwoSites() ? "," + Word.TWO_SITES : "");
    }

    private static void refuseBoth(String option, String text, Set<Word> words, Word one,
            Word other) {
        if (words.contains(one) && words.contains(other)) {
            throw wrong(option, text, one + " and " + other + " exclude each other");
        }
    }

    private static GridException wrong(String option, String text, String why) {
        return new GridException(option + " is '" + text + "': " + why + "; expected words of "
                + Arrays.stream(Word.values()).map(Word::toString)
                        .collect(Collectors.joining(", "))
                + ", with commas between, such as flash,partitioned-with-backup");
    }
}
