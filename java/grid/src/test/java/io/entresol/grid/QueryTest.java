package io.entresol.grid;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** The text that people get as the answer to a query. */
class QueryTest {
    @Test
    void groupsThatInfinispanMayHaveLeftOutAreToldOf() {
        String grouped = "select p.age, count(p.name) from sample.Person p GROUP  by p.age";
        assertTrue(Query.doubt(grouped, 100).contains("entresol-grid sql has no such limit"));
        assertNull(Query.doubt(grouped, 99));
        assertNull(Query.doubt("select p.age from sample.Person p", 1_000));
    }
}
