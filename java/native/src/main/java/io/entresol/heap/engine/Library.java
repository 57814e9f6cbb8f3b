package io.entresol.heap.engine;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * The native library, which lies inside the jar. It is unpacked into a temporary file that is
 * removed as soon as the library is loaded, so that a killed JVM leaves none.
 */
final class Library {
    private static Path file;
    private static boolean loaded;

    private Library() {
    }

    /** Loads it for JNI; does nothing the second time. */
    static synchronized void load() {
        if (!loaded) {
            System.load(unpack().toString());
            remove();
            loaded = true;
        }
    }

    /** The unpacked file, or the one that the property {@code entresol.heap.library} names. */
    static synchronized Path unpack() {
        String named = System.getProperty("entresol.heap.library");
        if (named != null) {
            return Path.of(named).toAbsolutePath();
        }
        if (file == null) {
            file = unpacked();
        }
        return file;
    }

    /** Removes the unpacked file, which stays loaded. */
    static synchronized void remove() {
        if (file != null && file.toFile().delete()) {
            file = null;
        }
    }

    private static Path unpacked() {
        String inside = "/io/entresol/heap/native/" + platform();
        try (InputStream library = Library.class.getResourceAsStream(inside)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("the jar holds no " + inside + ": this platform is"
                        + " not one it was built for. Build the jar here, or name a library with"
                        + " -Dentresol.heap.library=FILE");
            }
            String folder = System.getProperty("entresol.heap.temporary");
            Path unpacked = folder == null
                    ? Files.createTempFile("entresol-heap", ".so")
                    : Files.createTempFile(Path.of(folder), "entresol-heap", ".so");
            Files.copy(library, unpacked, StandardCopyOption.REPLACE_EXISTING);
            return unpacked;
        } catch (IOException failure) {
            throw (Error) new UnsatisfiedLinkError("cannot unpack " + inside + ": " + failure
                    + ". Name a folder that can be written to with"
                    + " -Dentresol.heap.temporary=FOLDER").initCause(failure);
        }
    }

    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String machine = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        if (machine.equals("x86_64")) {
            machine = "amd64";
        }
        return system.split(" ")[0] + "-" + machine + "/libentresol_ffi.so";
    }
}
