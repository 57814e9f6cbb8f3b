package io.entresol.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
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
        }
        String java = System.getProperty("java.home") + File.separator + "bin/java";
        String classes = System.getProperty("surefire.test.class.path",
                System.getProperty("java.class.path"));
        Process program = new ProcessBuilder(java, "--class-path", classes,
                "io.entresol.examples.Employees", path, "churn").start();
        long raises = 0;
        try (BufferedReader lines =
                new BufferedReader(new InputStreamReader(program.getInputStream()))) {
            while (raises < 50) {
                raises = Long.parseLong(lines.readLine());
            }
            program.destroyForcibly();
        }
        program.waitFor();
        try (Employees employees = new Employees(path)) {
            long raised = employees.salary(1) - 1000;
            assertTrue(raised >= raises, raises + " raises were said, " + raised + " are there");
            assertEquals(raised, employees.salary(300) - 2000);
            assertEquals(raised, employees.salary(7) - 3000);
            assertEquals(-1, employees.salary(8));
        }
    }
}
