package io.entresol.grid;

import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.infinispan.server.Server;

/**
 * Infinispan's server. Whoever stops a cluster waits for all caches that start, also for those that
 * a node began to start because others wait in them: all nodes give these back first, whichever way
 * the stop was asked for.
 */
final class GridServer extends Server {
    GridServer(File root, List<Path> configurations, Properties properties) {
        super(root, configurations, properties);
    }

    @Override
    public void clusterStop() {
        DeployedCaches.giveBackEverywhere(getCacheManager());
        super.clusterStop();
    }

    @Override
    public void containerStop() {
        DeployedCaches.giveBackEverywhere(getCacheManager());
        super.containerStop();
    }
}
