package io.entresol.heap.engine;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * The Foreign Function and Memory API of Java 22, found once by reflection, so that these classes
 * compile with Java 17 alone. Static final fields keep method handles and var handles, which the
 * compiler sees through: calls use no reflection.
 */
final class Ffm {
    private static final Class<?> SEGMENT = named("MemorySegment");
    private static final Class<?> LAYOUT = named("MemoryLayout");
    private static final Class<?> VALUE_LAYOUT = named("ValueLayout");
    private static final Class<?> DESCRIPTOR = named("FunctionDescriptor");
    private static final Class<?> ARENA = named("Arena");
    private static final Class<?> OPTION = named("Linker$Option");

    /** All addresses as one segment. */
    private static final Object ALL = all();
    private static final Object LINKER = invoke(method(named("Linker"), "nativeLinker"), null);
    private static final Object LIBRARY = library();

    private static final MethodHandle COPY = copies();
    private static final MethodHandle COPY_OUT = copiesOut();
    private static final MethodHandle COPY_IN = copiesIn();
    private static final MethodHandle FILL = fills();
    private static final MethodHandle BUFFER = buffers();
    private static final MethodHandle BUFFER_OF = handle(method(SEGMENT, "asByteBuffer"))
            .asType(MethodType.methodType(ByteBuffer.class, Object.class));
    private static final MethodHandle SEGMENT_OF = segments();

    private Ffm() {
    }

    /** A function of the library: {@code longs} longs in, one long out. */
    static MethodHandle function(String name, int longs) {
        Optional<?> symbol = (Optional<?>) invoke(
                method(named("SymbolLookup"), "find", String.class), LIBRARY, name);
        Object address = symbol.orElseThrow(
                () -> new UnsatisfiedLinkError("the native library has no " + name));
        Object[] layouts = (Object[]) Array.newInstance(LAYOUT, longs);
        java.util.Arrays.fill(layouts, layout("JAVA_LONG"));
        Object descriptor = invoke(
                method(DESCRIPTOR, "of", LAYOUT, layouts.getClass()),
                null, layout("JAVA_LONG"), layouts);
        Object options = Array.newInstance(OPTION, 0);
        return (MethodHandle) invoke(
                method(named("Linker"), "downcallHandle", SEGMENT, DESCRIPTOR, options.getClass()),
                LINKER, address, descriptor, options);
    }

    /** Calls a function that a static final field holds, so that the compiler sees which. */
    static long call(MethodHandle function, long a) {
        try {
            return (long) function.invokeExact(a);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b) {
        try {
            return (long) function.invokeExact(a, b);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c) {
        try {
            return (long) function.invokeExact(a, b, c);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d) {
        try {
            return (long) function.invokeExact(a, b, c, d);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d, long e) {
        try {
            return (long) function.invokeExact(a, b, c, d, e);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d, long e, long f) {
        try {
            return (long) function.invokeExact(a, b, c, d, e, f);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d, long e, long f,
            long g) {
        try {
            return (long) function.invokeExact(a, b, c, d, e, f, g);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d, long e, long f, long g,
            long h) {
        try {
            return (long) function.invokeExact(a, b, c, d, e, f, g, h);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static long call(MethodHandle function, long a, long b, long c, long d, long e, long f, long g,
            long h, long i) {
        try {
            return (long) function.invokeExact(a, b, c, d, e, f, g, h, i);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    /** Plain access at any address. */
    static VarHandle plain(Class<?> type) {
        String name = "JAVA_" + type.getName().toUpperCase(java.util.Locale.ROOT);
        return accessor(type == byte.class ? name : name + "_UNALIGNED");
    }

    /** Atomic access at addresses that are multiples of the type's size. */
    static VarHandle atomic(Class<?> type) {
        return accessor("JAVA_" + type.getName().toUpperCase(java.util.Locale.ROOT));
    }

    static void copy(long from, long to, long bytes) {
        try {
            COPY.invokeExact(from, to, bytes);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static void copyOut(long from, byte[] to, int index, int bytes) {
        try {
            COPY_OUT.invokeExact(from, (Object) to, index, bytes);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static void copyIn(byte[] from, int index, long to, int bytes) {
        try {
            COPY_IN.invokeExact((Object) from, index, to, bytes);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static void fill(long address, long bytes, byte value) {
        try {
            FILL.invokeExact(address, bytes, value);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static ByteBuffer buffer(long address, long bytes) {
        try {
            return (ByteBuffer) BUFFER.invokeExact(address, bytes);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    /** An {@code Arena} that any thread may close, which makes its segments and buffers refuse. */
    static Object arena() {
        return invoke(method(ARENA, "ofShared"), null);
    }

    static void close(Object arena) {
        invoke(method(ARENA, "close"), arena);
    }

    /** A {@code MemorySegment} over {@code bytes} bytes from {@code address}. */
    static Object segment(long address, long bytes, Object arena) {
        try {
            return (Object) SEGMENT_OF.invokeExact(address, bytes, arena);
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    /** The same for reading only. */
    static Object readOnly(Object segment) {
        return invoke(method(SEGMENT, "asReadOnly"), segment);
    }

    static ByteBuffer buffer(long address, long bytes, Object arena) {
        try {
            return (ByteBuffer) BUFFER_OF.invokeExact(segment(address, bytes, arena));
        } catch (Throwable failure) {
            throw unexpected(failure);
        }
    }

    static RuntimeException unexpected(Throwable failure) {
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure instanceof RuntimeException exception) {
            throw exception;
        }
        return new IllegalStateException(failure);
    }

    private static VarHandle accessor(String layout) {
        VarHandle handle = (VarHandle) invoke(
                method(VALUE_LAYOUT, "varHandle"), layout(layout));
        // Since 22, as the segment's accessors that take an offset are.
        Method insert = method(
                MethodHandles.class, "insertCoordinates", VarHandle.class, int.class,
                Object[].class);
        VarHandle absolute =
                (VarHandle) invoke(insert, null, handle, 0, new Object[] {ALL});
        return absolute.withInvokeExactBehavior();
    }

    private static MethodHandle copies() {
        MethodHandle copy = handle(method(SEGMENT, "copy", SEGMENT, long.class, SEGMENT,
                long.class, long.class));
        return MethodHandles.insertArguments(MethodHandles.insertArguments(copy, 2, ALL), 0, ALL);
    }

    private static MethodHandle copiesOut() {
        MethodHandle copy = handle(method(SEGMENT, "copy", SEGMENT, VALUE_LAYOUT, long.class,
                Object.class, int.class, int.class));
        return MethodHandles.insertArguments(copy, 0, ALL, layout("JAVA_BYTE"));
    }

    private static MethodHandle copiesIn() {
        MethodHandle copy = handle(method(SEGMENT, "copy", Object.class, int.class, SEGMENT,
                VALUE_LAYOUT, long.class, int.class));
        return MethodHandles.insertArguments(copy, 2, ALL, layout("JAVA_BYTE"));
    }

    private static MethodHandle fills() {
        MethodHandle fill = handle(method(SEGMENT, "fill", byte.class));
        return MethodHandles.collectArguments(fill, 0, slices())
                .asType(MethodType.methodType(
                        void.class, long.class, long.class, byte.class));
    }

    private static MethodHandle buffers() {
        return MethodHandles.collectArguments(
                handle(method(SEGMENT, "asByteBuffer")), 0, slices());
    }

    private static MethodHandle segments() {
        MethodHandle from = handle(method(SEGMENT, "ofAddress", long.class));
        MethodHandle sized = handle(
                method(SEGMENT, "reinterpret", long.class, ARENA, Consumer.class));
        MethodHandle whole = MethodHandles.insertArguments(sized, 3, (Object) null);
        return MethodHandles.filterArguments(whole, 0, from).asType(
                MethodType.methodType(Object.class, long.class, long.class, Object.class));
    }

    private static MethodHandle slices() {
        MethodHandle slice = handle(method(SEGMENT, "asSlice", long.class, long.class));
        return MethodHandles.insertArguments(slice, 0, ALL);
    }

    private static Object all() {
        Object none = field(SEGMENT, "NULL");
        return invoke(method(SEGMENT, "reinterpret", long.class), none, Long.MAX_VALUE);
    }

    private static Object library() {
        Object global = invoke(method(ARENA, "global"), null);
        Method lookup = method(
                named("SymbolLookup"), "libraryLookup", Path.class, ARENA);
        Object library = invoke(lookup, null, Library.unpack(), global);
        Library.remove();
        return library;
    }

    private static Object layout(String name) {
        return field(VALUE_LAYOUT, name);
    }

    private static Class<?> named(String name) {
        try {
            return Class.forName("java.lang.foreign." + name);
        } catch (ClassNotFoundException failure) {
            throw missing(failure);
        }
    }

    private static Method method(Class<?> type, String name, Class<?>... parameters) {
        try {
            return type.getMethod(name, parameters);
        } catch (NoSuchMethodException failure) {
            throw missing(failure);
        }
    }

    private static MethodHandle handle(Method method) {
        try {
            return MethodHandles.lookup().unreflect(method);
        } catch (IllegalAccessException failure) {
            throw missing(failure);
        }
    }

    private static Object field(Class<?> type, String name) {
        try {
            return type.getField(name).get(null);
        } catch (ReflectiveOperationException failure) {
            throw missing(failure);
        }
    }

    private static Object invoke(Method method, Object receiver, Object... arguments) {
        try {
            return method.invoke(receiver, arguments);
        } catch (java.lang.reflect.InvocationTargetException failure) {
            throw unexpected(failure.getCause());
        } catch (IllegalAccessException failure) {
            throw missing(failure);
        }
    }

    private static IllegalStateException missing(ReflectiveOperationException failure) {
        return new IllegalStateException("this JVM has not the Foreign Function and Memory API of"
                + " Java 22; use -Dentresol.heap.native=jni", failure);
    }
}
