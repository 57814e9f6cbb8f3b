package io.entresol.infinispan;

import io.entresol.infinispan.recovery.Removals;
import io.entresol.infinispan.recovery.SiteVersions;
import io.entresol.infinispan.recovery.StoppingOwners;
import io.entresol.infinispan.recovery.Versions;
import java.util.List;
import org.infinispan.commons.CacheConfigurationException;
import org.infinispan.configuration.cache.Configuration;
import org.infinispan.configuration.cache.Configurations;
import org.infinispan.configuration.cache.StoreConfiguration;
import org.infinispan.configuration.global.GlobalConfiguration;
import org.infinispan.factories.ComponentRegistry;
import org.infinispan.interceptors.AsyncInterceptor;
import org.infinispan.interceptors.AsyncInterceptorChain;
import org.infinispan.interceptors.distribution.TriangleDistributionInterceptor;
import org.infinispan.interceptors.impl.CacheLoaderInterceptor;
import org.infinispan.interceptors.impl.CacheWriterInterceptor;
import org.infinispan.persistence.util.EntryLoader;

/**
 * The part of Infinispan that gives caches on flash interceptors of their own, and has their stores
 * closed once they have stopped: {@link FlashBesideLoaders}, {@link Invalidations},
 * {@link JCacheLoads}, {@link Loaded}, {@link LoadingReads}, {@link Removals}, {@link SiteVersions},
 * {@link StoppingOwners}, {@link Touches}, {@link Versions} and {@link WritesBehind}.
 * Infinispan finds it by its service file. Not for other uses.
 */
public final class InterceptorsModule extends ContainerModule {
    /** For the service loader. */
    public InterceptorsModule() {
        super("entresol-infinispan", "core");
    }

    @Override
    public void cacheStarting(ComponentRegistry registry, Configuration configuration,
            String name) {
        List<StoreConfiguration> stores = configuration.persistence().stores().stream()
                .filter(EntresolStoreConfiguration.class::isInstance).toList();
        if (stores.isEmpty()) {
            return;
        }
        refusePassivation(configuration, stores, name);
        boolean behind = stores.stream().anyMatch(store -> store.async().enabled());
        AsyncInterceptorChain chain = registry.getComponent(AsyncInterceptorChain.class);
        add(chain, new StoppingOwners(), TriangleDistributionInterceptor.class);
        add(chain, new Removals(registry.getDistributionManager()), CacheWriterInterceptor.class);
        add(chain, new LoadingReads(
                behind ? keys -> OpenStores.changed(container(registry), name, keys) : null),
                CacheLoaderInterceptor.class);
        if (behind) {
            add(chain, new WritesBehind(registry, name), LoadingReads.class);
            AsyncInterceptor writer =
                    chain.findInterceptorExtending(CacheWriterInterceptor.class);
            if (writer != null && !chain.containsInterceptorType(WritesBehind.Room.class)) {
                chain.addInterceptorAfter(new WritesBehind.Room(registry, name),
                        writer.getClass());
            }
        }
        if (Configurations.isTxVersioned(configuration)
                && chain.findInterceptorExtending(CacheLoaderInterceptor.class)
                instanceof EntryLoader<?, ?> loader) {
            add(chain, new Versions(registry, loader), CacheWriterInterceptor.class);
        }
        addForSites(registry, configuration, chain);
        addForWhatIsOnFlashAlone(registry, configuration, chain);
        if (configuration.clustering().cacheMode().isInvalidation()) {
            add(chain, new Invalidations(registry), CacheWriterInterceptor.class);
        }
    }

    /**
     * Infinispan tells a put as done while the entry is in the heap alone, and forgets it when the
     * store refuses it later, as it is full, or when the process dies.
     */
    private static void refusePassivation(Configuration configuration,
            List<StoreConfiguration> stores, String name) {
        if (configuration.persistence().passivation()
                && !stores.stream().allMatch(StoreConfiguration::ignoreModifications)) {
            throw new CacheConfigurationException("cache " + name + " has passivation=\"true\", by"
                    + " which an entry is in Java's heap alone until it is evicted: a full store or"
                    + " a crash would lose it though its put was acknowledged. Set"
                    + " <persistence passivation=\"false\">: the store then has all entries, those"
                    + " that it has already among them, and the heap its hot ones as before");
        }
    }

    private static void addForWhatIsOnFlashAlone(ComponentRegistry registry,
            Configuration configuration, AsyncInterceptorChain chain) {
        AsyncInterceptor loads = chain.findInterceptorExtending(CacheLoaderInterceptor.class);
        if (loads instanceof EntryLoader<?, ?> loader) {
            add(chain, new Touches(registry, configuration, loader),
                    CacheLoaderInterceptor.class);
            if (!chain.containsInterceptorType(Loaded.class)) {
                chain.addInterceptorAfter(new Loaded(), loads.getClass());
            }
        }
        if (FlashBesideLoaders.isNeeded(configuration)) {
            add(chain, new FlashBesideLoaders(registry, configuration),
                    CacheLoaderInterceptor.class);
        } else if (!chain.containsInterceptorType(JCacheLoads.class)) {
            // Before all that looks at a command's flags.
            chain.addInterceptor(new JCacheLoads(registry), 0);
        }
    }

    /** Behind what loads, whatever writes: with passivation that is another. */
    private static void addForSites(ComponentRegistry registry, Configuration configuration,
            AsyncInterceptorChain chain) {
        AsyncInterceptor loads = chain.findInterceptorExtending(CacheLoaderInterceptor.class);
        if (configuration.sites().hasAsyncEnabledBackups()
                && configuration.clustering().cacheMode().isClustered()
                && loads instanceof EntryLoader<?, ?> loader
                && !chain.containsInterceptorType(SiteVersions.class)) {
            chain.addInterceptorAfter(new SiteVersions(registry, loader), loads.getClass());
        }
    }

    @Override
    public void cacheStopping(ComponentRegistry registry, String name) {
        OpenStores.stopping(container(registry), name);
    }

    @Override
    public void cacheStopped(ComponentRegistry registry, String name) {
        OpenStores.stopped(container(registry), name);
    }

    private static GlobalConfiguration container(ComponentRegistry registry) {
        return registry.getGlobalComponentRegistry().getGlobalConfiguration();
    }

    /** Once, and only into chains that have the other one: it is of no use elsewhere. */
    private static void add(AsyncInterceptorChain chain, AsyncInterceptor interceptor,
            Class<? extends AsyncInterceptor> before) {
        AsyncInterceptor next = chain.findInterceptorExtending(before);
        if (next != null && chain.findInterceptorWithClass(interceptor.getClass()) == null) {
            chain.addInterceptorBefore(interceptor, next.getClass());
        }
    }
}
