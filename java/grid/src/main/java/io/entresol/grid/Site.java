package io.entresol.grid;

/**
 * A grid that sends its changes to another grid, and takes that grid's changes.
 *
 * @param name this site's name
 * @param other the name of the other site
 * @param bridge addresses where the nodes of the other site listen for ours, {@code HOST[PORT],…}
 */
record Site(String name, String other, String bridge) {
    /** From {@code LON} and {@code NYC=HOST:PORT,…}; null where both are null. */
    static Site parse(String name, String other) {
        if ((name == null) != (other == null)) {
            throw new GridException("--site and --other-site go together; name this site and where"
                    + " the other one is: --site LON --other-site NYC=10.1.0.1:7850");
        }
        if (name == null) {
            return null;
        }
        int equals = other.indexOf('=');
        if (equals < 1) {
            throw new GridException("--other-site is '" + other + "'; expected"
                    + " NAME=HOST:PORT, such as NYC=10.1.0.1:7850");
        }
        String theirs = other.substring(0, equals);
        if (theirs.equals(name)) {
            throw new GridException("--site and --other-site are both '" + name
                    + "'; expected two names");
        }
        return new Site(name, theirs,
                Members.parse("--other-site", other.substring(equals + 1).split(",")));
    }
}
