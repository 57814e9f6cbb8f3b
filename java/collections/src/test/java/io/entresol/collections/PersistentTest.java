package io.entresol.collections;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.entresol.collections.processor.PersistentProcessor;
import java.io.StringWriter;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes that the annotation makes persistent. */
final class PersistentTest {
    @TempDir
    Path folder;

    @Test
    void fieldsAreThereAfterReopening() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            Staff ada = PersistentStaff.create(objects, "Ada", 1);
            Staff bob = PersistentStaff.create(objects, "Bob", 2);
            bob.setSalary(5000);
            bob.boss(ada);
            bob.setRemote(true);
            bob.skills(PersistentArray.of(objects, "rust", "java"));
            bob.share(0.25);
            objects.directory().put("bob", bob);
            objects.directory().put("point", PersistentPoint.create(objects, (byte) 7, 3, 4));
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            assertEquals(0, objects.collect().freedBlocks(), "all is led to");
            Staff bob = objects.directory().get("bob", Staff.class);
            assertEquals("Bob", bob.name());
            assertEquals(2, bob.number());
            assertEquals(10_000, bob.twice());
            assertEquals("Ada", bob.boss().name());
            assertSame(bob.boss(), bob.boss());
            assertNull(bob.boss().boss());
            assertTrue(bob.isRemote());
            assertEquals("java", bob.skills().get(1));
            assertEquals(0.25, bob.share());
            Point point = objects.directory().get("point", Point.class);
            assertEquals(5, point.length());
            assertEquals(7, point.kind());
            assertEquals("geometry.Point", PersistentPoint.TYPE.name());
            Codec<Staff> staff = objects.reference(Staff.class);
            assertSame(bob, staff.decode(staff.encode(bob)));
            bob.boss(bob);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            assertTrue(objects.directory().remove("bob"));
            Collected collected = objects.collect();
            assertEquals(1, collected.keptObjects(), "the point alone");
            assertEquals("", objects.heap().check());
        }
    }

    @Test
    void whatATransactionStoredIsUndoneWithIt() {
        try (ObjectHeap objects = Heaps.create(folder)) {
            Staff ada = PersistentStaff.create(objects, "Ada", 1);
            assertThrows(IllegalStateException.class, () -> objects.run(() -> {
                ada.setSalary(1);
                ada.share(0.5);
                ada.boss(PersistentStaff.create(objects, "Eve", 3));
                throw new IllegalStateException();
            }));
            assertEquals(0, ada.getSalary());
            assertNull(ada.share());
            assertNull(ada.boss());
        }
    }

    @Test
    void aClassMayBeRenamedAndGetFieldsAtItsEnd() throws Exception {
        String first = "package p; import io.entresol.collections.*; @Persistent public interface A"
                + " { int a(); void a(int v); }";
        String second = "package p; import io.entresol.collections.*; @Persistent(name = \"p.A\")"
                + " public interface B { int a(); void a(int v); long b(); void b(long v);"
                + " String c(); void c(String v); }";
        String third = "package p; import io.entresol.collections.*; @Persistent(name = \"p.A\")"
                + " public interface B { long b(); void b(long v); int a(); void a(int v); }";
        try (ObjectHeap objects = Heaps.create(folder)) {
            Object made = make(compiled("p.A", first, "one"), "p.PersistentA", objects);
            call(made, "a", int.class, 5);
            objects.directory().put("it", made);
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            ClassLoader loader = compiled("p.B", second, "two");
            in(loader, () -> {
                Object it = objects.directory().get("it", Object.class);
                assertEquals(5, call(it, "a"));
                assertEquals(0L, call(it, "b"));
                assertNull(call(it, "c"));
                call(it, "b", long.class, 7L);
                call(it, "c", String.class, "new");
            });
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            in(compiled("p.B", second, "three"), () -> {
                assertEquals(0, objects.collect().freedBlocks(), "all is led to");
                Object it = objects.directory().get("it", Object.class);
                assertEquals("p.PersistentB", it.getClass().getName());
                assertEquals(5, call(it, "a"));
                assertEquals(7L, call(it, "b"));
                assertEquals("new", call(it, "c"));
            });
        }
        try (ObjectHeap objects = Heaps.open(folder)) {
            in(compiled("p.B", third, "four"), () -> {
                IllegalStateException refused = assertThrows(IllegalStateException.class,
                        () -> objects.directory().get("it", Object.class));
                assertTrue(refused.getMessage().contains("`a int, b long"), refused.getMessage());
            });
        }
    }

    @Test
    void fieldsThatAClassGotAreKeptByACollectionThatLearnsOfThemFirst() throws Exception {
        // The entry of the longer fields was made after the types had been looked at, and freed.
        String first = "package p; import io.entresol.collections.*; @Persistent public interface A"
                + " { int a(); void a(int v); }";
        String second = "package p; import io.entresol.collections.*; @Persistent public interface"
                + " A { int a(); void a(int v); long b(); void b(long v); }";
        try (ObjectHeap objects = Heaps.create(folder)) {
            Object made = make(compiled("p.A", first, "one"), "p.PersistentA", objects);
            objects.directory().put("it", made);
        }
        for (String place : List.of("two", "three")) {
            try (ObjectHeap objects = Heaps.open(folder)) {
                in(compiled("p.A", second, place), () -> {
                    assertEquals(1, objects.collect().keptObjects());
                    PersistentTuple1.of(objects, "takes the room of what is freed");
                    assertEquals(0L, call(objects.directory().get("it", Object.class), "b"));
                });
                assertEquals("", objects.heap().check());
            }
        }
    }

    @Test
    void whatAPersistentClassTracesByItselfIsKept() throws Exception {
        String source = "package p; import io.entresol.collections.*; @Persistent public abstract"
                + " class A extends PersistentObject { protected A(ObjectHeap o, long h)"
                + " { super(o, h); } public abstract long own(); public abstract void own(long v);"
                + " protected void trace(Tracer tracer) { tracer.block(own()); } }";
        ClassLoader loader = compiled("p.A", source, "one");
        try (ObjectHeap objects = Heaps.create(folder)) {
            Object made = make(loader, "p.PersistentA", objects);
            long block = objects.heap().allocateMemory(100);
            call(made, "own", long.class, block);
            assertEquals(0, objects.collect().freedBlocks());
            assertTrue(objects.heap().isLive(block));
        }
    }

    @Test
    void methodsThatObjectsHaveAreNoFields() throws Exception {
        String source = "package p; import io.entresol.collections.*; @Persistent public interface"
                + " A { long handle(); ObjectHeap objects(); String toString(); int a(); }";
        ClassLoader loader = compiled("p.A", source, "one");
        try (ObjectHeap objects = Heaps.create(folder)) {
            Object made = Class.forName("p.PersistentA", true, loader)
                    .getMethod("create", ObjectHeap.class, int.class).invoke(null, objects, 5);
            assertEquals(((PersistentObject) made).handle(), call(made, "handle"));
            assertEquals(5, call(made, "a"));
        }
    }

    @Test
    void fieldsMayHaveAnnotationsOfTheirTypes() throws Exception {
        String source = "package p; import io.entresol.collections.*;"
                + " import java.lang.annotation.*; @Persistent public interface A {"
                + " @Target(ElementType.TYPE_USE) @interface Maybe { }"
                + " @Maybe String a(); void a(@Maybe String v); @Maybe Long b();"
                + " void b(@Maybe Long v); byte @Maybe [] c(); void c(byte @Maybe [] v); }";
        ClassLoader loader = compiled("p.A", source, "one");
        try (ObjectHeap objects = Heaps.create(folder)) {
            Object made = make(loader, "p.PersistentA", objects);
            call(made, "a", String.class, "x");
            assertEquals("x", call(made, "a"));
            assertNull(call(made, "b"));
        }
    }

    @Test
    void mistakesAreErrorsAtTheirPlace() throws Exception {
        refused("interface A { void a(int v); }", "nothing reads the field a");
        refused("interface A { int a(); void a(long v); }", "read as int and changed as long");
        refused("interface A { java.util.Date a(); }", "java.util.Date cannot be the type");
        refused("interface A { int[] a(); }", "int[] cannot be the type");
        refused("interface A { int a(int b); }", "reads a field (no parameter)");
        refused("interface A { int a(); int getA(); }", "read by two methods");
        refused("interface A { <T> void a(T v); }", "cannot be generic");
        refused("interface A<T> { int a(); }", "cannot be generic");
        refused("interface A extends Comparable<A> { }", "is inherited");
        refused("abstract class A { abstract int a(); }", "must extend");
        refused("class A extends PersistentObject { A(ObjectHeap o, long h) { super(o, h); }"
                + " protected void trace(Tracer t) { } }", "must be abstract");
        refused("final class A { }", "cannot be final");
        refused("interface A { int block(); }", "block() is a method of");
        refused("enum A { B }", "only an interface or an abstract class");
        refused("abstract class A extends PersistentObject { A(ObjectHeap o) { super(o, 1); } }",
                "needs a constructor");
    }

    private void refused(String declaration, String sentence) throws Exception {
        String source =
                "package q;\nimport io.entresol.collections.*;\n@Persistent\n" + declaration;
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        compile("q.A", source, Files.createTempDirectory(folder, "refused"), said);
        List<Diagnostic<? extends JavaFileObject>> errors = said.getDiagnostics();
        Diagnostic<?> found = errors.stream()
                .filter(each -> each.getMessage(null).contains(sentence)).findFirst()
                .orElseThrow(() -> new AssertionError(declaration + ": " + errors));
        assertEquals(Diagnostic.Kind.ERROR, found.getKind());
        assertTrue(found.getLineNumber() >= 3, found.toString());
    }

    private ClassLoader compiled(String name, String source, String place) throws Exception {
        Path classes = Files.createDirectory(folder.resolve(place));
        DiagnosticCollector<JavaFileObject> said = new DiagnosticCollector<>();
        assertTrue(compile(name, source, classes, said), said.getDiagnostics().toString());
        return new URLClassLoader(
                new URL[] {classes.toUri().toURL()}, getClass().getClassLoader());
    }

    private static boolean compile(String name, String source, Path classes,
            DiagnosticCollector<JavaFileObject> said) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        URI uri = URI.create("string:///" + name.replace('.', '/') + ".java");
        JavaFileObject file = new SimpleJavaFileObject(uri, JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignoreErrors) {
                return source;
            }
        };
        String classPath = Path.of(location(Persistent.class)).toString() + ":"
                + Path.of(location(io.entresol.heap.TransactionalHeap.class));
        JavaCompiler.CompilationTask task = compiler.getTask(new StringWriter(), null, said,
                List.of("-d", classes.toString(), "-cp", classPath), null, List.of(file));
        task.setProcessors(List.of(new PersistentProcessor()));
        return task.call();
    }

    private static URI location(Class<?> type) {
        return URI.create(type.getProtectionDomain().getCodeSource().getLocation().toString());
    }

    private static Object make(ClassLoader loader, String name, ObjectHeap objects)
            throws Exception {
        return Class.forName(name, true, loader).getMethod("create", ObjectHeap.class)
                .invoke(null, objects);
    }

    private static void in(ClassLoader loader, Body body) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            body.run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static Object call(Object on, String method) throws Exception {
        return on.getClass().getMethod(method).invoke(on);
    }

    private static void call(Object on, String method, Class<?> type, Object argument)
            throws Exception {
        on.getClass().getMethod(method, type).invoke(on, argument);
    }

    private interface Body {
        void run() throws Exception;
    }
}
