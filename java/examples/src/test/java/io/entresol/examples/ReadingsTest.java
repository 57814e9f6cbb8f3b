package io.entresol.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadingsTest {
    @TempDir
    Path folder;

    @Test
    void readingsAreThereByTheTimeAlsoAfterReopening() {
        Path file = folder.resolve("data");
        try (Readings readings = new Readings(file)) {
            for (int time = 0; time < 100; time++) {
                readings.add("roof", time, time);
                readings.add("roof2", time, -1);
            }
        }
        try (Readings readings = new Readings(file)) {
            readings.add("roof", 100, 100);
            assertEquals(99, readings.latest("roof", 3));
            assertEquals(-1, readings.latest("roof2", 3));
            assertEquals(Double.NaN, readings.latest("cellar", 3));
            assertEquals(101, readings.count("roof"));
            assertEquals(0, readings.count("cellar"));
        }
    }
}
