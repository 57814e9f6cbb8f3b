package io.entresol.examples;

import io.entresol.collections.Codec;
import io.entresol.collections.Collected;
import io.entresol.collections.ObjectHeap;
import io.entresol.collections.Persistent;
import io.entresol.collections.PersistentTreeMap;
import io.entresol.heap.AnyHeap;

/**
 * The employees of {@link Employees} as objects. An interface is enough for their class. A sorted
 * map finds them by number, and the heap's directory finds the map. A dismissed employee is garbage
 * once no object leads to it.
 *
 * <pre>
 * Company HEAP hire NUMBER SALARY NAME [BOSS]
 * Company HEAP dismiss NUMBER
 * Company HEAP list
 * Company HEAP churn      (raises salaries until it is killed)
 * </pre>
 */
public final class Company implements AutoCloseable {
    private static final long HEAP_BYTES = 64L << 20;
    private static final String EMPLOYEES = "employees";

    private final ObjectHeap objects;
    private final PersistentTreeMap<Long, Employee> byNumber;

    /** Opens the company in a file, which is made if it is not there. */
    public Company(String path) {
        objects = AnyHeap.exists(path)
                ? ObjectHeap.open(path) : ObjectHeap.create(path, HEAP_BYTES);
        byNumber = objects.run(this::employees);
    }

    // ANCHOR: employee
    /** Somebody who works there. The compiler writes {@code PersistentCompany_Employee}. */
    @Persistent
    public interface Employee {
        /** The name, given for good. */
        String name();

        /** The salary. */
        long salary();

        /** Changes the salary. */
        void salary(long salary);

        /** Whom they report to; null is nobody. */
        Employee boss();

        /** Changes whom they report to. */
        void boss(Employee boss);
    }
    // ANCHOR_END: employee

    /** What the command line asks for. */
    public static void main(String[] arguments) {
        try (Company company = new Company(arguments[0])) {
            switch (arguments[1]) {
                case "hire":
                    company.hire(Long.parseLong(arguments[2]), Long.parseLong(arguments[3]),
                            arguments[4], arguments.length > 5 ? Long.parseLong(arguments[5]) : 0);
                    break;
                case "dismiss":
                    company.dismiss(Long.parseLong(arguments[2]));
                    System.out.println(company.tidy());
                    break;
                case "churn":
                    for (long round = 1; true; round++) {
                        company.raiseBy(1);
                        System.out.println(round);
                    }
                default:
                    company.list();
            }
        }
    }

    // ANCHOR: hire
    /** Adds an employee, who reports to the one of number {@code boss}, if there is one. */
    public Employee hire(long number, long salary, String name, long boss) {
        return objects.run(() -> {
            Employee employee = PersistentCompany_Employee.create(objects, name);
            employee.salary(salary);
            employee.boss(byNumber.get(boss));
            byNumber.put(number, employee);
            return employee;
        });
    }
    // ANCHOR_END: hire

    /** Removes an employee, if there is one; who reported to them reports to their boss. */
    public void dismiss(long number) {
        objects.run(() -> {
            Employee gone = byNumber.remove(number);
            for (Employee each : byNumber.values()) {
                if (gone != null && each.boss() == gone) {
                    each.boss(gone.boss());
                }
            }
        });
    }

    /** Raises all salaries by the same amount, or none. */
    public void raiseBy(long amount) {
        objects.run(() -> byNumber.values().forEach(
                employee -> employee.salary(employee.salary() + amount)));
    }

    /** The employee of that number; null if there is none. */
    public Employee employee(long number) {
        return byNumber.get(number);
    }

    /** Frees what nobody leads to. */
    public Collected tidy() {
        return objects.collect();
    }

    /** Prints all employees by number. */
    public void list() {
        byNumber.forEach((number, employee) -> System.out.println(
                number + " " + employee.name() + " " + employee.salary()));
    }

    @Override
    public void close() {
        objects.close();
    }

    @SuppressWarnings("unchecked")
    private PersistentTreeMap<Long, Employee> employees() {
        PersistentTreeMap<Long, Employee> known =
                objects.directory().get(EMPLOYEES, PersistentTreeMap.class);
        if (known == null) {
            known = PersistentTreeMap.create(
                    objects, Codec.LONG, objects.reference(Employee.class));
            objects.directory().put(EMPLOYEES, known);
        }
        return known;
    }
}
