package io.entresol.infinispan.recovery;

import static org.testng.Assert.assertEquals;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.UUID;
import org.infinispan.commons.util.Util;
import org.testng.annotations.Test;

/** A node's knowledge of undeployed caches. */
@Test(groups = "unit", testName = "infinispan.UndeployedTest")
public class UndeployedTest {
    private static final UUID ONE = new UUID(1, 1);
    private static final UUID OTHER = new UUID(2, 2);

    /**
     * A cache came back with a node that nobody could tell, and users wrote to it: those who knew
     * of its former end would have had all drop it after the next death of all.
     */
    public void aCacheThatIsThereAgainCountsAsUndeployedNoMore() throws Exception {
        Path folder = Files.createTempDirectory("undeployed");
        try {
            Undeployed known = new Undeployed(folder.resolve("known"));
            assertEquals(known.among(Set.of(ONE, OTHER)), Set.of());
            known.strike(ONE);
            known.add(ONE);
            known.add(OTHER);
            known.add(ONE);
            Undeployed read = new Undeployed(folder.resolve("known"));
            assertEquals(read.among(Set.of(ONE, OTHER, new UUID(3, 3))), Set.of(ONE, OTHER));
            read.strike(ONE);
            assertEquals(known.among(Set.of(ONE, OTHER)), Set.of(OTHER));
            read.strike(OTHER);
            assertEquals(known.among(Set.of(ONE, OTHER)), Set.of());
        } finally {
            Util.recursiveFileRemove(folder.toFile());
        }
    }
}
