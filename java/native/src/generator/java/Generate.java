import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Writes the classes through which Java calls the native library and reaches its memory, in the
 * version for Java 17 and in that for Java 22 and newer. Each function that {@code Jni.java}
 * declares gets a method with its comment, and so does each that {@code UnsafeMemory.java} has. Run
 * by the build before it compiles: {@code java Generate.java ENGINE FOLDER FOLDER22}.
 */
public final class Generate {
    /** Of names without a package: what gives JNI's own buffers is not one of them. */
    private static final Pattern DECLARED = Pattern.compile(
            "^ {4}static (?:native )?(\\w+) (\\w+)\\(([^)]*)\\)", Pattern.MULTILINE);
    private static final Pattern COMMENTED = Pattern.compile(
            "(^ {4}/[*]{2}(?:(?![*]/)[\\s\\S])*[*]/\n)" + DECLARED.pattern(),
            Pattern.MULTILINE);

    private static final String MEMORY = """
            /**
             * Memory by absolute address, in the machine's byte order. Nothing is checked here: \
            callers have
             * proved that the addresses are theirs. The ordered and atomic forms need a multiple \
            of their size.
             */
            """;

    /** Classes of the library's functions: those whose names begin in one of these ways. */
    private static final List<Facade> FACADES = List.of(
            new Facade("NativeStore", "store|scan", "store", """
                    /**
                     * The native library's flash stores; as {@link Native}. Requests and outcomes \
                    are rows of words in
                     * native memory, which {@code entresol.h} draws.
                     */
                    """),
            new Facade("NativeTables", "table", "", """
                    /**
                     * The native library's ordered tables; as {@link Native}. Pages, batches and \
                    questions of merges
                     * are bytes in native memory, which {@code entresol.h} draws.
                     */
                    """),
            new Facade("NativeConsole", "console", "console", """
                    /**
                     * The native library's console of stores; as {@link Native}. Figures and looks \
                    are JSON, which
                     * {@code entresol.h} lists.
                     */
                    """),
            new Facade("NativeBlocks", "blocks", "blocks", """
                    /** The native library's lists of blocks; as {@link Native}. */
                    """),
            new Facade("Native", "", "", """
                    /**
                     * The native library's functions. All take and give longs. A negative result \
                    is a failure: its
                     * negation is the address of a text, which {@link Failure#of} reads and \
                    releases.
                     */
                    """));

    private static final String FORWARDED = """

            @Comment@    public static @result@ @method@(@parameters@) {
                    @return@@from@.@name@(@arguments@);
                }
            """;

    /** The condition is constant, so that the compiler leaves one way out. */
    private static final String CHOSEN = """

            @Comment@    public static @result@ @method@(@parameters@) {
                    return FFM ? @newer@ : @from@.@name@(@arguments@);
                }
            """;

    private static final String CHOSEN_VOID = """

            @Comment@    public static void @method@(@parameters@) {
                    if (FFM) {
                        @newer@;
                    } else {
                        @from@.@name@(@arguments@);
                    }
                }
            """;

    /** A static final handle, through which the compiler sees the function. */
    private static final String HANDLE = """
                private static final MethodHandle @HANDLE@ =
                        FFM ? Ffm.function("@symbol@", @count@) : null;
            """;

    private static final String PLAIN = """
                private static final VarHandle @TYPE@ = FFM ? Ffm.plain(@type@.class) : null;
            """;

    private static final String ATOMIC = """
                private static final VarHandle @TYPE@_ATOMIC = FFM ? Ffm.atomic(@type@.class) : null;
            """;

    private static final String FFM = """
                private static final boolean FFM = "ffm".equals(Native.path());

            """;

    private static final String PATH = """

                /** Which way the library is called: {@code jni} or {@code ffm}. */
                public static String path() {
                    if ("ffm".equals(System.getProperty("entresol.heap.native"))) {
                        throw new IllegalStateException("entresol.heap.native is ffm, which needs \
            Java 22 or"
                                + " newer; this is Java " + Runtime.version().feature());
                    }
                    return "jni";
                }
            """;

    private static final String PATH_22 = """

                /** Which way the library is called: {@code jni} or {@code ffm}. */
                public static String path() {
                    return "jni".equals(System.getProperty("entresol.heap.native")) ? "jni" : "ffm";
                }
            """;

    private Generate() {
    }

    public static void main(String[] arguments) throws IOException {
        Path engine = Path.of(arguments[0]);
        Path older = Path.of(arguments[1]);
        Path newer = Path.of(arguments[2]);
        List<Function> library = functions(engine.resolve("Jni.java"));
        for (Facade facade : FACADES) {
            List<Function> own = library.stream().filter(facade::has).toList();
            write(older, facade.name, facade.for17(own));
            write(newer, facade.name, facade.for22(own));
        }
        List<Function> memory = functions(engine.resolve("UnsafeMemory.java"));
        write(older, "Memory", type("java.nio.ByteBuffer", MEMORY, "Memory", "",
                all(memory, function -> function.in(FORWARDED, "UnsafeMemory"))));
        write(newer, "Memory", type("java.lang.invoke.VarHandle;\nimport java.nio.ByteBuffer",
                MEMORY, "Memory", FFM + accessors(memory, "get[A-Z][a-z]+", PLAIN)
                        + accessors(memory, "getAndAdd[A-Z][a-z]+", ATOMIC) + "\n",
                all(memory, Function::inMemory22)));
    }

    /** The functions of a class; each must have a comment. */
    private static List<Function> functions(Path file) throws IOException {
        String text = Files.readString(file);
        List<Function> functions = COMMENTED.matcher(text).results().map(Function::of).toList();
        long declared = DECLARED.matcher(text).results().count();
        if (functions.size() != declared) {
            throw new IllegalStateException(file + " has " + declared + " functions; expected a"
                    + " comment before each, found " + functions.size());
        }
        return functions;
    }

    private static String type(String imports, String comment, String name, String fields,
            String methods) {
        return "package io.entresol.heap.engine;\n\n"
                + (imports.isEmpty() ? "" : "import " + imports + ";\n\n") + comment
                + "public final class " + name + " {\n" + fields
                + "    private " + name + "() {\n    }\n" + methods + "}\n";
    }

    private static String all(List<Function> functions,
            java.util.function.Function<Function, String> text) {
        return functions.stream().map(text).collect(Collectors.joining());
    }

    /** Of each type that functions of such a name are about. */
    private static String accessors(List<Function> memory, String names, String template) {
        return memory.stream().filter(function -> function.name.matches(names))
                .map(Function::result).map(type -> template.replace("@type@", type)
                        .replace("@TYPE@", type.toUpperCase(Locale.ROOT)))
                .collect(Collectors.joining());
    }

    private static void write(Path root, String name, String text) throws IOException {
        Path folder = root.resolve(Path.of("io", "entresol", "heap", "engine"));
        Files.createDirectories(folder);
        Path file = folder.resolve(name + ".java");
        // An unchanged file keeps its time, so that nothing is compiled again.
        if (!Files.exists(file) || !Files.readString(file).equals(text)) {
            Files.writeString(file, text);
        }
    }

    /** A static method as its class declares it. */
    private record Function(String comment, String result, String name, String parameters) {
        /** How memory is accessed: what, the type, in which order. */
        private static final Pattern ACCESS = Pattern.compile(
                "(get|put|compareAndSet|getAndAdd)(Byte|Short|Char|Int|Long|Float|Double)(\\w*)");

        static Function of(MatchResult declared) {
            return new Function(declared.group(1), declared.group(2), declared.group(3),
                    declared.group(4));
        }

        /** Its words in small letters, as the library's symbols have them. */
        String snake() {
            return name.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
        }

        String handle() {
            return snake().toUpperCase(Locale.ROOT);
        }

        List<String> arguments() {
            return Pattern.compile("\\w+(?=,|$)").matcher(parameters).results()
                    .map(MatchResult::group).toList();
        }

        String in(String template, String from) {
            return in(template, from, name);
        }

        String in(String template, String from, String method) {
            return template.replace("@Comment@", comment).replace("@method@", method)
                    .replace("@result@", result).replace("@parameters@", parameters)
                    .replace("@return@", result.equals("void") ? "" : "return ")
                    .replace("@from@", from).replace("@name@", name)
                    .replace("@arguments@", String.join(", ", arguments()))
                    .replace("@count@", String.valueOf(arguments().size()))
                    .replace("@HANDLE@", handle()).replace("@symbol@", "entresol_" + snake());
        }

        String inMemory22() {
            Matcher access = ACCESS.matcher(name);
            String given = String.join(", ", arguments());
            String newer = access.matches()
                    ? access(access.group(1), access.group(2), access.group(3), given)
                    : "Ffm." + name + "(" + given + ")";
            return in((result.equals("void") ? CHOSEN_VOID : CHOSEN).replace("@newer@", newer),
                    "UnsafeMemory");
        }

        private String access(String what, String type, String order, String given) {
            boolean plain = order.isEmpty() && (what.equals("get") || what.equals("put"));
            String cast = result.equals("void") || result.equals("boolean") ? ""
                    : "(" + result + ") ";
            return cast + type.toUpperCase(Locale.ROOT) + (plain ? "" : "_ATOMIC") + "."
                    + (what.equals("put") ? "set" : what) + order + "(" + given + ")";
        }
    }

    /** A class of methods: those of functions whose names begin with {@code prefixes}. */
    private record Facade(String name, String prefixes, String dropped, String comment) {
        boolean has(Function function) {
            return FACADES.stream().filter(each -> function.name.matches(
                    "(" + each.prefixes + ").*")).findFirst().orElseThrow() == this;
        }

        String for17(List<Function> functions) {
            return type("", comment, name, "", (isFirst() ? PATH : "")
                    + all(functions, each -> each.in(FORWARDED, "Jni", method(each))));
        }

        String for22(List<Function> functions) {
            String handles = all(functions, each -> each.in(HANDLE, "Jni"));
            return type("java.lang.invoke.MethodHandle", comment, name, FFM + handles + "\n",
                    (isFirst() ? PATH_22 : "") + all(functions, this::for22));
        }

        private String for22(Function function) {
            String newer = "Ffm.call(@HANDLE@, @arguments@)";
            return function.in(CHOSEN.replace("@newer@", newer), "Jni", method(function));
        }

        private boolean isFirst() {
            return name.equals("Native");
        }

        private String method(Function function) {
            String rest = function.name.startsWith(dropped)
                    ? function.name.substring(dropped.length()) : function.name;
            return rest.substring(0, 1).toLowerCase(Locale.ROOT) + rest.substring(1);
        }
    }
}
