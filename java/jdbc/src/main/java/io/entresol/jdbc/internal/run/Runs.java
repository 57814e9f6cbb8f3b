package io.entresol.jdbc.internal.run;

/** A statement whose runs can be cancelled. */
public interface Runs {
    Run run();
}
