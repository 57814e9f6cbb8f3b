package io.entresol.jdbc.internal.rows;

import io.entresol.infinispan.Privileged;
import io.entresol.jdbc.internal.column.ColumnType;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import javax.security.auth.Subject;
import org.infinispan.AdvancedCache;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.entresol.Trusted;
import org.infinispan.manager.EmbeddedCacheManager;
import org.infinispan.protostream.SerializationContext;
import org.infinispan.registry.InternalCacheRegistry;
import org.infinispan.security.AuthorizationManager;
import org.infinispan.security.AuthorizationPermission;
import org.infinispan.security.Security;
import org.infinispan.server.core.query.impl.ProtobufMetadataManagerImpl;

/** A cache container that connections share. */
public final class Container {
    private static final Map<EmbeddedCacheManager, Map<Map<String, ColumnType>, Container>> KNOWN =
            new IdentityHashMap<>();

    private final EmbeddedCacheManager manager;
    private final Map<String, ColumnType> keys;
    private final Map<List<String>, CacheRows> rows = new ConcurrentHashMap<>();

    private Container(EmbeddedCacheManager manager, Map<String, ColumnType> keys) {
        this.manager = manager;
        this.keys = keys;
    }

    /** The container, for connections that give the same types to keys. */
    public static Container of(EmbeddedCacheManager manager, Map<String, ColumnType> keys) {
        synchronized (KNOWN) {
            KNOWN.keySet().removeIf(each -> each.getStatus().isTerminated());
            return KNOWN.computeIfAbsent(manager, any -> new HashMap<>())
                    .computeIfAbsent(keys, any -> new Container(manager, keys));
        }
    }

    /** The rows of a cache's values of one type; the cache starts when they are first needed. */
    public CacheRows rows(String cache, String type) {
        CacheRows known = rows.get(List.of(cache, type));
        if (known == null || !known.isCurrent()) {
            // Under no lock: a start rebuilds the index, and is nothing to statements on others.
            known = CacheRows.of(this, cache, type);
            rows.put(List.of(cache, type), known);
        }
        return known;
    }

    /** Caches that people made. */
    public Set<String> cacheNames() {
        InternalCacheRegistry internal = Trusted.call(() ->
                Privileged.getComponent(manager, InternalCacheRegistry.class));
        Set<String> names = new TreeSet<>(manager.getCacheNames());
        names.addAll(manager.getCacheConfigurationNames());
        names.removeIf(name -> internal.isInternalCache(name) || isTemplate(name));
        return names;
    }

    private boolean isTemplate(String name) {
        Configuration configuration = configuration(name);
        return configuration == null || configuration.isTemplate();
    }

    public Configuration configuration(String cache) {
        return Privileged.getCacheConfiguration(manager, cache);
    }

    /**
     * The cache, its keys and values as they are kept. What it is asked asks for no permission:
     * that is {@link #require}.
     */
    AdvancedCache<Object, Object> cache(String name) {
        return Privileged.getUnwrappedCache(manager, name);
    }

    /** Complains unless the user for whom this thread works may do that with a cache. */
    public void require(String cache, AuthorizationPermission permission) {
        AuthorizationManager asked = cache(cache).getAuthorizationManager();
        if (asked == null || asked.isPermissive()) {
            return;
        }
        Subject user = Security.getSubject();
        // Not by a check, which passes where a server carries out a statement.
        if (user == null || !asked.getPermissions(user).contains(permission)) {
            String name = Security.getSubjectUserPrincipalName(user);
            throw new SecurityException((name == null ? "nobody in particular" : "user '" + name
                    + "'") + " lacks the permission " + permission + " of cache " + cache
                    + "; ask as another user, or give this one a role that has it");
        }
    }

    /** The type of a cache's keys, if the URL named it; else null. */
    ColumnType keyType(String cache) {
        return keys.get(cache);
    }

    SerializationContext schemas() {
        return Trusted.call(() -> ProtobufMetadataManagerImpl.getSerializationContext(manager));
    }
}
