package io.entresol.examples;

import io.entresol.heap.AnyHeap;
import io.entresol.heap.RadixTree;
import io.entresol.heap.Transaction;
import io.entresol.heap.TransactionalHeap;
import io.entresol.heap.TransactionalMemoryBlock;
import java.nio.charset.StandardCharsets;

/**
 * Employees that outlive the program: each a block with a number, a salary and a name, found by an
 * ordered map from numbers, whose handle is the heap's root.
 *
 * <pre>
 * Employees HEAP hire NUMBER SALARY NAME
 * Employees HEAP raise PERCENT
 * Employees HEAP list
 * Employees HEAP churn      (raises salaries until it is killed)
 * </pre>
 */
public final class Employees implements AutoCloseable {
    private static final long HEAP_BYTES = 64L << 20;
    private static final long NUMBER_AT = 0;
    private static final long SALARY_AT = 8;
    private static final long NAME_BYTES_AT = 16;
    private static final long NAME_AT = 20;

    private final TransactionalHeap heap;
    private final RadixTree byNumber;

    /** Opens the employees in a file, which is made if it is not there. */
    public Employees(String path) {
        heap = AnyHeap.exists(path)
                ? TransactionalHeap.openHeap(path)
                : TransactionalHeap.createHeap(path, HEAP_BYTES);
        if (heap.getRoot() == 0) {
            Transaction.create(heap, () -> heap.setRoot(RadixTree.create(heap).handle()));
        }
        byNumber = RadixTree.open(heap, heap.getRoot());
    }

    /** What the command line asks for. */
    public static void main(String[] arguments) {
        try (Employees employees = new Employees(arguments[0])) {
            switch (arguments[1]) {
                case "hire":
                    employees.hire(Long.parseLong(arguments[2]), Long.parseLong(arguments[3]),
                            arguments[4]);
                    break;
                case "raise":
                    employees.raise(Long.parseLong(arguments[2]));
                    break;
                case "churn":
                    for (long round = 1; true; round++) {
                        employees.raiseBy(1);
                        System.out.println(round);
                    }
                default:
                    employees.list();
            }
        }
    }

    /** Adds an employee: the block and its entry in the map, or neither. */
    public void hire(long number, long salary, String name) {
        byte[] text = name.getBytes(StandardCharsets.UTF_8);
        Transaction.create(heap, () -> {
            long block = heap.allocateMemoryBlock(NAME_AT + text.length, range -> {
                range.setLong(NUMBER_AT, number);
                range.setLong(SALARY_AT, salary);
                range.setInt(NAME_BYTES_AT, text.length);
                if (text.length > 0) {
                    range.copyFromArray(text, 0, NAME_AT, text.length);
                }
            }).handle();
            long before = byNumber.put(key(number), block, 0);
            if (before != 0) {
                heap.memoryBlockFromHandle(before).free();
            }
        });
    }

    /** Raises all salaries, or none. */
    public void raise(long percent) {
        Transaction.create(heap, () -> forEach(employee -> employee.setLong(
                SALARY_AT, employee.getLong(SALARY_AT) * (100 + percent) / 100)));
    }

    /** Raises all salaries by the same amount, or none. */
    public void raiseBy(long amount) {
        Transaction.create(heap, () -> forEach(employee -> employee.setLong(
                SALARY_AT, employee.getLong(SALARY_AT) + amount)));
    }

    /** The salary of an employee, -1 if there is none of that number. */
    public long salary(long number) {
        long block = byNumber.get(key(number), 0);
        return block == 0 ? -1 : heap.memoryBlockFromHandle(block).getLong(SALARY_AT);
    }

    /** Prints all employees by number. */
    public void list() {
        forEach(employee -> {
            byte[] name = new byte[employee.getInt(NAME_BYTES_AT)];
            if (name.length > 0) {
                employee.copyToArray(NAME_AT, name, 0, name.length);
            }
            System.out.println(employee.getLong(NUMBER_AT) + " "
                    + new String(name, StandardCharsets.UTF_8) + " "
                    + employee.getLong(SALARY_AT));
        });
    }

    @Override
    public void close() {
        heap.close();
    }

    private void forEach(java.util.function.Consumer<TransactionalMemoryBlock> action) {
        try (RadixTree.Cursor cursor = byNumber.entries()) {
            while (cursor.next()) {
                action.accept(heap.memoryBlockFromHandle(cursor.value()));
            }
        }
    }

    /** Big-endian, so that the order of keys is that of numbers. */
    private static byte[] key(long number) {
        return java.nio.ByteBuffer.allocate(Long.BYTES).putLong(number).array();
    }
}
