package io.entresol.cassandra.node;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** What the launcher believes of a node's process. */
class NodeFolderTest {
    /** A second thread reads a line; the first ends alone, which only the bare call can do. */
    private static final String FIRST_THREAD_ENDS = String.join("\n",
            "import ctypes, os, platform, threading, time",
            "def others():",
            "    path = f'/proc/{os.getpid()}/stat'",
            "    while open(path).read().rsplit(')', 1)[1].split()[0] != 'Z': time.sleep(0.01)",
            "    os.write(1, b'x')",
            "    os.read(0, 1)",
            "    os._exit(0)",
            "threading.Thread(target=others).start()",
            "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)");

    /**
     * {@code stop} returned while threads of the node still held its ports, since the state that
     * the system tells of a process is that of its first thread; a start right after it failed.
     */
    @Test
    void aProcessHasNotEndedWhileAnyOfItsThreadsRuns() throws Exception {
        Process process = new ProcessBuilder("python3", "-c", FIRST_THREAD_ENDS)
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            assertEquals('x', process.getInputStream().read());
            assertFalse(NodeFolder.hasEnded(process.toHandle()));
            process.getOutputStream().close();
            process.waitFor();
            assertTrue(NodeFolder.hasEnded(process.toHandle()));
        } finally {
            process.destroyForcibly();
        }
    }
}
