package io.entresol.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.collections.Collected;
import io.entresol.heap.Kills;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CompanyTest {
    @TempDir
    Path folder;

    @Test
    void whenTheProgramIsKilledAllSalariesWereRaisedAlike() throws Exception {
        String path = folder.resolve("company").toString();
        try (Company company = new Company(path)) {
            company.hire(1, 1000, "Ada", 0);
            company.hire(300, 2000, "Grace", 1);
        }
        long raises = Long.parseLong(Kills.after(50, 0, Company.class, path, "churn"));
        try (Company company = new Company(path)) {
            long raised = company.employee(1).salary() - 1000;
            assertTrue(raised >= raises, raises + " raises were said, " + raised + " are there");
            assertEquals(raised, company.employee(300).salary() - 2000);
            assertSame(company.employee(1), company.employee(300).boss());
        }
    }

    @Test
    void whoWasDismissedIsGarbage() {
        String path = folder.resolve("company").toString();
        try (Company company = new Company(path)) {
            company.hire(1, 1000, "Ada", 0);
            company.hire(2, 2000, "Grace", 1);
            company.hire(3, 3000, "Jean", 2);
            company.dismiss(2);
            // Nobody reports to an employee who is not there.
            company.dismiss(99);
        }
        try (Company company = new Company(path)) {
            assertNull(company.employee(2));
            assertSame(company.employee(1), company.employee(3).boss());
            Collected collected = company.tidy();
            assertEquals(3, collected.keptObjects(), "the map and two employees");
            assertTrue(collected.freedBlocks() > 0, collected.toString());
            assertEquals("Jean", company.employee(3).name());
        }
    }
}
