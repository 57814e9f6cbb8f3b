package io.entresol.grid;

/** Asks every node what it says of itself, its ports among it: JSON text from each. */
public final class NodeTask extends GridTask {
    static final String NAME = "entresol-node";

    /** As the server makes it. */
    public NodeTask() {
        super(NAME);
    }

    @Override
    public String call() {
        return Node.facts(System::getProperty).toString();
    }
}
