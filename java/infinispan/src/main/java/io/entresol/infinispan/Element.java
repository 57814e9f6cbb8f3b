package io.entresol.infinispan;

/** Elements of the configuration. */
enum Element {
    ENTRESOL_STORE("entresol-store");

    private final String name;

    Element(String name) {
        this.name = name;
    }

    @Override
    public String toString() {
        return name;
    }
}
