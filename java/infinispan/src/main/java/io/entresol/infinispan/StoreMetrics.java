package io.entresol.infinispan;

import io.entresol.StoreException;
import io.entresol.StoreStatistics;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.infinispan.commons.stat.CounterTracker;
import org.infinispan.commons.stat.MetricInfo;
import org.infinispan.factories.GlobalComponentRegistry;
import org.infinispan.jmx.CacheManagerJmxRegistration;
import org.infinispan.metrics.impl.MetricUtils;
import org.infinispan.metrics.impl.MetricsCollector;
import org.infinispan.persistence.spi.InitializationContext;
import org.infinispan.util.logging.Log;
import org.infinispan.util.logging.LogFactory;

/**
 * The figures of a store where Infinispan publishes its own while the cache's statistics are on:
 * among its metrics, by the names that {@code entresol serve} gives them, and in JMX.
 *
 * <p>Infinispan's counters can only be increased, and do not ask for a value. So they are increased
 * when the gauges are read. The gauges were registered first, so a reading of all figures reads
 * them first, and the counters are of the same moment.
 */
final class StoreMetrics implements AutoCloseable {
    private static final Log LOG = LogFactory.getLog(StoreMetrics.class);
    private static final String PREFIX = "entresol_";
    private static final String COMPONENT = "EntresolStore";
    /** Whoever asks for a part of the metrics gets none that are older. */
    private static final long FRESH_NANOS = 1_000_000_000;

    private final Supplier<StoreStatistics> store;
    private final Map<String, CounterTracker> counters = new LinkedHashMap<>();
    private final Map<String, Long> counted = new HashMap<>();
    private StoreStatistics figures;
    private final Set<String> told = new HashSet<>();
    private long taken;

    private MetricsCollector collector;
    private Set<Object> metrics = Set.of();
    private MBeanServer server;
    private ObjectName bean;

    private StoreMetrics(Supplier<StoreStatistics> store) {
        this.store = store;
        this.figures = store.get();
    }

    /** Publishes what {@code store} tells, wherever the container publishes anything. */
    static StoreMetrics publish(InitializationContext context, long memoryBytes,
            Supplier<StoreStatistics> store) {
        StoreMetrics published = new StoreMetrics(store);
        if (context.getCache().getCacheConfiguration().statistics().enabled()) {
            GlobalComponentRegistry container =
                    Privileged.getRegistry(context.getCache().getCacheManager());
            published.measure(container.getComponent(MetricsCollector.class),
                    context.getCache().getName(), memoryBytes);
            published.manage(container.getComponent(CacheManagerJmxRegistration.class), context);
        }
        return published;
    }

    /** The store's figures now; the last ones of a store that has closed. */
    synchronized StoreStatistics look() {
        try {
            figures = store.get();
        } catch (StoreException closed) {
            return figures;
        }
        counters.forEach((name, counter) -> {
            long now = figures.figure(name);
            counter.increment(now - counted.getOrDefault(name, 0L));
            counted.put(name, now);
        });
        return figures;
    }

    /** Before the store closes. */
    @Override
    public void close() {
        metrics.forEach(metric -> collector.unregisterMetric(metric));
        metrics = Set.of();
        try {
            if (bean != null && server.isRegistered(bean)) {
                server.unregisterMBean(bean);
            }
        } catch (JMException failure) {
            LOG.debugf(failure, "%s could not be taken out of JMX", bean);
        }
    }

    /** {@code metricsOf} is null where the container has no metrics. */
    private void measure(MetricsCollector metricsOf, String cache, long memoryBytes) {
        if (metricsOf == null) {
            return;
        }
        collector = metricsOf;
        List<MetricInfo> gauges = new ArrayList<>();
        List<MetricInfo> grow = new ArrayList<>();
        for (String figure : figures.names()) {
            if (StoreStatistics.isGauge(figure)) {
                gauges.add(gauge(figure));
            } else {
                grow.add(MetricUtils.<StoreMetrics>createCounter(figure, description(figure),
                        (self, counter) -> self.count(figure, counter), null));
            }
        }
        gauges.add(MetricUtils.<StoreMetrics>createGauge("memory_cap_bytes",
                description("memory_cap_bytes"), self -> memoryBytes, null));
        gauges.addAll(grow);
        metrics = collector.registerMetrics(this, gauges, PREFIX, cache);
    }

    private static MetricInfo gauge(String figure) {
        String name = figure.equals("write_amplification") ? figure + "_ratio" : figure;
        return MetricUtils.<StoreMetrics>createGauge(name, description(figure),
                self -> self.tell(figure), null);
    }

    /** One look at the store is for all that is asked for once. */
    private synchronized double tell(String figure) {
        long now = System.nanoTime();
        if (told.isEmpty() || told.contains(figure) || now - taken > FRESH_NANOS) {
            look();
            taken = now;
            told.clear();
        }
        told.add(figure);
        return figures.value(figure);
    }

    private static String description(String figure) {
        return "The cache's store on this node: " + figure.replace('_', ' ');
    }

    private synchronized void count(String figure, CounterTracker counter) {
        counters.put(figure, counter);
    }

    /** {@code management} is off where the container has no JMX. */
    private void manage(CacheManagerJmxRegistration management, InitializationContext context) {
        if (management == null || !management.enabled()) {
            return;
        }
        String mode = context.getCache().getCacheConfiguration().clustering().cacheModeString();
        String manager = context.getGlobalConfiguration().cacheManagerName();
        try {
            ObjectName name = new ObjectName(management.getDomain() + ":type=Cache,name="
                    + ObjectName.quote(context.getCache().getName() + "("
                            + mode.toLowerCase(Locale.ROOT) + ")")
                    + ",manager=" + ObjectName.quote(manager) + ",component=" + COMPONENT);
            server = management.getMBeanServer();
            server.registerMBean(new StoreBean(this), name);
            bean = name;
        } catch (JMException failure) {
            LOG.warnf(failure, "Cache %s: the figures of its store are not in JMX",
                    context.getCache().getName());
        }
    }
}
