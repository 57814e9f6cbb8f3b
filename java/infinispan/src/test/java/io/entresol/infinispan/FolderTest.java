package io.entresol.infinispan;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.infinispan.commons.test.CommonsTestingUtil;
import org.infinispan.commons.util.Util;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.testng.annotations.AfterClass;
import org.testng.annotations.BeforeClass;

/** Tests of caches whose stores are in a folder of the test class, which is removed with it. */
abstract class FolderTest {
    String folder;

    @BeforeClass(alwaysRun = true)
    protected void makeFolder() throws IOException {
        folder = CommonsTestingUtil.tmpDirectory(getClass());
        Files.createDirectories(Path.of(folder));
    }

    @AfterClass(alwaysRun = true)
    protected void removeFolder() throws IOException {
        Util.recursiveFileRemove(folder);
    }

    /** The configuration of a cache with a small store, in a file of its own. */
    final EntresolStoreConfigurationBuilder flash() {
        return flash(new ConfigurationBuilder());
    }

    /** The same of what is configured so far. */
    final EntresolStoreConfigurationBuilder flash(ConfigurationBuilder cache) {
        return cache.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                .path(folder).capacity("64MiB").memory("64MiB");
    }

    /** What a failure says, and those that it came of. */
    static String sentences(Throwable failure) {
        StringBuilder said = new StringBuilder();
        for (Throwable each = failure; each != null; each = each.getCause()) {
            said.append(each.getMessage()).append('\n');
        }
        return said.toString();
    }
}
