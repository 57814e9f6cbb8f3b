package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;
import java.io.File;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.infinispan.server.Server;
import org.infinispan.server.configuration.ServerConfigurationBuilder;

/**
 * Infinispan's server. A stop of the cluster waits for all starting caches, also for caches that a
 * node began to start because other nodes wait in them. So all nodes give these up first, however
 * the stop was requested.
 */
final class GridServer extends Server {
    GridServer(File root, List<Path> configurations, Properties properties) {
        super(root, configurations, properties);
        if (NodeTls.CLIENTS.of(properties::getProperty).map(TlsFiles::authorities).isPresent()) {
            // The connectors of the port that several share say it, and the port does not hear it.
            getConfigurationBuilderHolder().getGlobalConfigurationBuilder()
                    .module(ServerConfigurationBuilder.class).endpoints().endpoints().values()
                    .forEach(each -> each.singlePort().ssl().requireClientAuth(true));
        }
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
