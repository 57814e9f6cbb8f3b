package io.entresol.infinispan.recovery;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Function;
import org.infinispan.commons.util.Version;
import org.infinispan.distribution.ch.ConsistentHash;
import org.infinispan.distribution.ch.impl.ConsistentHashFactory;
import org.infinispan.globalstate.ScopedPersistentState;
import org.infinispan.globalstate.impl.GlobalStateManagerImpl;
import org.infinispan.globalstate.impl.ScopedPersistentStateImpl;
import org.infinispan.remoting.transport.Address;

/**
 * A consistent hash as Infinispan saves it when a cluster is shut down: names and values, the
 * persistent identities of nodes in place of their addresses.
 */
final class SavedHash {
    private static final String MEMBERS = "members";
    private static final String MEMBER = "member.";
    private static final String SEGMENTS = "numSegments";

    private final Map<UUID, Address> addresses = new HashMap<>();
    private final Map<Address, UUID> nodes = new HashMap<>();
    private final ConsistentHashFactory<ConsistentHash> factory;
    private final ConsistentHash hash;

    /** What was saved; {@code cache} is the name of the cache. */
    SavedHash(String cache, Map<String, String> saved, ConsistentHashFactory<?> factory) {
        this.factory = ofAll(factory);
        this.hash = this.factory.fromPersistentState(state(cache, saved), this::address)
                .consistentHash();
    }

    /** What Infinispan saves of a hash; {@code nodes} gives the identities of addresses. */
    static Map<String, String> save(String cache, ConsistentHash hash,
            Function<Address, UUID> nodes) {
        ScopedPersistentState state = new ScopedPersistentStateImpl(cache);
        hash.toScopedState(state, nodes);
        return entries(state);
    }

    /** As a file of Infinispan's global state. */
    static ScopedPersistentState state(String cache, Map<String, String> saved) {
        ScopedPersistentState state = new ScopedPersistentStateImpl(cache);
        state.setProperty(GlobalStateManagerImpl.VERSION, Version.getVersion());
        state.setProperty(GlobalStateManagerImpl.VERSION_MAJOR, Version.getMajor());
        saved.forEach(state::setProperty);
        return state;
    }

    /** The hash in a file of Infinispan's global state. */
    static Map<String, String> entries(ScopedPersistentState state) {
        Map<String, String> saved = new LinkedHashMap<>();
        state.forEach((name, value) -> {
            if (!name.startsWith("@") && !name.equals(GlobalStateManagerImpl.VERSION_MAJOR)) {
                saved.put(name, value);
            }
        });
        return saved;
    }

    /** The identities of all members that were saved. */
    static List<UUID> members(Map<String, String> saved) {
        List<UUID> members = new ArrayList<>();
        int count = Integer.parseInt(saved.getOrDefault(MEMBERS, "0"));
        for (int number = 0; number < count; number++) {
            members.add(UUID.fromString(saved.get(MEMBER + number)));
        }
        return members;
    }

    /** How many segments were saved; of replicated caches, which do not say, {@code otherwise}. */
    static int segments(Map<String, String> saved, int otherwise) {
        String count = saved.get(SEGMENTS);
        return count == null ? otherwise : Integer.parseInt(count);
    }

    /** Whether a node owns anything. */
    boolean owns(UUID node) {
        Address address = addresses.get(node);
        return address != null && !hash.getSegmentsForOwner(address).isEmpty();
    }

    /** How many segments nobody of {@code holders} owns. */
    int lost(Set<UUID> holders) {
        int lost = 0;
        for (int segment = 0; segment < hash.getNumSegments(); segment++) {
            boolean held = hash.locateOwnersForSegment(segment).stream()
                    .anyMatch(owner -> holders.contains(nodes.get(owner)));
            lost += held ? 0 : 1;
        }
        return lost;
    }

    /** The same with {@code holders} as the only members; segments that are lost go to them. */
    Map<String, String> of(String cache, Set<UUID> holders) {
        List<Address> kept = new ArrayList<>(hash.getMembers());
        kept.removeIf(member -> !holders.contains(nodes.get(member)));
        Map<Address, Float> factors = new HashMap<>();
        for (Address member : kept) {
            Float factor = hash.getCapacityFactors() == null
                    ? null : hash.getCapacityFactors().get(member);
            factors.put(member, factor == null ? Float.valueOf(1) : factor);
        }
        return save(cache, factory.updateMembers(hash, kept, factors), nodes::get);
    }

    private Address address(UUID node) {
        return addresses.computeIfAbsent(node, unknown -> {
            Address made = Address.random(unknown.toString());
            nodes.put(made, unknown);
            return made;
        });
    }

    /** Each factory takes the hashes that it made, and no others are given to it here. */
    @SuppressWarnings("unchecked")
    private static ConsistentHashFactory<ConsistentHash> ofAll(ConsistentHashFactory<?> factory) {
        return (ConsistentHashFactory<ConsistentHash>) factory;
    }
}
