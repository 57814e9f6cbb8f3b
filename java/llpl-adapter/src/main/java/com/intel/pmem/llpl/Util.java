package com.intel.pmem.llpl;

/** Settings that programs may make before they use a heap. */
public final class Util {
    private Util() {
    }

    /** The folder that the native library is unpacked in until it is loaded. */
    public static void setLLPLTempDirectory(String folder) {
        System.setProperty("entresol.heap.temporary", folder);
    }
}
