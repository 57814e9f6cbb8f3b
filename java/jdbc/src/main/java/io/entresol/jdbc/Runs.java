package io.entresol.jdbc;

/** A statement whose runs can be cancelled. */
interface Runs {
    Run run();
}
