package io.entresol.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.heap.Kills;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EmployeesTest {
    @TempDir
    Path folder;

    @Test
    void whenTheProgramIsKilledAllSalariesWereRaisedAlike() throws Exception {
        String path = folder.resolve("employees").toString();
        try (Employees employees = new Employees(path)) {
            employees.hire(1, 1000, "Ada");
            employees.hire(300, 2000, "Grace");
            employees.hire(7, 3000, "Gr\u00e9goire");
            employees.hire(7, 3000, "Gregor");
            employees.hire(8, 4000, "");
            employees.list();
        }
        long raises = Long.parseLong(
                Kills.after(50, 0, Employees.class, path, "churn"));
        try (Employees employees = new Employees(path)) {
            long raised = employees.salary(1) - 1000;
            assertTrue(raised >= raises, raises + " raises were said, " + raised + " are there");
            assertEquals(raised, employees.salary(300) - 2000);
            assertEquals(raised, employees.salary(7) - 3000);
            assertEquals(raised, employees.salary(8) - 4000);
            assertEquals(-1, employees.salary(9));
        }
    }
}
