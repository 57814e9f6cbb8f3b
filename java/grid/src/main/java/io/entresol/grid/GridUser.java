package io.entresol.grid;

import java.security.GeneralSecurityException;
import java.security.Provider;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;
import org.wildfly.security.password.PasswordFactory;
import org.wildfly.security.password.WildFlyElytronPasswordProvider;
import org.wildfly.security.password.interfaces.ScramDigestPassword;
import org.wildfly.security.password.spec.BasicPasswordSpecEncoding;
import org.wildfly.security.password.spec.EncryptablePasswordSpec;
import org.wildfly.security.password.spec.IteratedSaltedPasswordAlgorithmSpec;

/**
 * A user of a grid: the hashes of the password, as Infinispan keeps them, and the roles.
 *
 * @param hashes {@code ALGORITHM:BASE64;…}
 * @param roles names of Infinispan's roles, at least one
 */
record GridUser(String hashes, List<Role> roles) {
    /** The first is the one that passwords are compared with; clients choose theirs of all. */
    private static final List<String> ALGORITHMS = List.of(
            ScramDigestPassword.ALGORITHM_SCRAM_SHA_256,
            ScramDigestPassword.ALGORITHM_SCRAM_SHA_512,
            ScramDigestPassword.ALGORITHM_SCRAM_SHA_384);
    /** What no password in plain begins with that anybody has. */
    private static final String HASHED = "scram-sha-";
    private static final String ROLES = " roles=";
    private static final SecureRandom RANDOM = new SecureRandom();

    /** What a user may do; the names are Infinispan's, and so is what they permit. */
    enum Role {
        ADMIN, DEPLOYER, APPLICATION, OBSERVER, MONITOR;

        @Override
        public String toString() {
            return name().toLowerCase(Locale.ROOT);
        }

        static Optional<Role> named(String name) {
            return Arrays.stream(values()).filter(role -> role.toString().equals(name))
                    .findFirst();
        }

        static String all() {
            return Arrays.stream(values()).map(Role::toString).collect(Collectors.joining(", "));
        }
    }

    /** A user of a password in plain; no roles: all that there is. */
    static GridUser of(String password, List<Role> roles) {
        return new GridUser(ALGORITHMS.stream().map(each -> each + ":" + hash(each, password))
                .collect(Collectors.joining(";")), roles.isEmpty() ? List.of(Role.ADMIN) : roles);
    }

    /**
     * What stands behind the name and {@code =}. The messages of what is thrown show none of it,
     * but for the names of roles.
     */
    static GridUser parse(String text) {
        if (!text.startsWith(HASHED)) {
            return of(text, List.of());
        }
        int end = text.indexOf(ROLES);
        String hashes = (end < 0 ? text : text.substring(0, end)).strip();
        for (String each : hashes.split(";", -1)) {
            check(each);
        }
        return new GridUser(hashes, end < 0 ? List.of(Role.ADMIN)
                : Arrays.stream(text.substring(end + ROLES.length()).strip().split(",", -1))
                        .map(GridUser::role).toList());
    }

    private static Role role(String name) {
        return Role.named(name.strip()).orElseThrow(() -> new IllegalArgumentException("'" + name
                + "' is no role; expected some of " + Role.all() + ", with commas between"));
    }

    private static void check(String hash) {
        int colon = hash.indexOf(':');
        try {
            PasswordFactory.getInstance(hash.substring(0, Math.max(colon, 0)),
                    WildFlyElytronPasswordProvider.getInstance()).generatePassword(
                            BasicPasswordSpecEncoding.decode(
                                    Base64.getDecoder().decode(hash.substring(colon + 1))));
        } catch (GeneralSecurityException | RuntimeException mistake) {
            // Without the cause: it may quote what it read.
            throw new IllegalArgumentException("the hash of the password cannot be read; make the"
                    + " line anew: entresol-grid user add NAME");
        }
    }

    private static String hash(String algorithm, String password) {
        byte[] salt = new byte[ScramDigestPassword.DEFAULT_SALT_SIZE];
        RANDOM.nextBytes(salt);
        try {
            PasswordFactory factory = PasswordFactory.getInstance(algorithm,
                    WildFlyElytronPasswordProvider.getInstance());
            byte[] hashed = BasicPasswordSpecEncoding.encode(factory.generatePassword(
                    new EncryptablePasswordSpec(password.toCharArray(),
                            new IteratedSaltedPasswordAlgorithmSpec(
                                    ScramDigestPassword.DEFAULT_ITERATION_COUNT, salt))),
                    () -> new Provider[] {
                        WildFlyElytronPasswordProvider.getInstance()});
            return Base64.getEncoder().encodeToString(hashed);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("Java has no " + algorithm, missing);
        }
    }

    /** Why the user cannot have the name: nodes may take it for the role that has it. */
    Optional<String> misnamed(String name) {
        return Role.named(name).filter(role -> !roles.contains(role) && !roles.contains(Role.ADMIN))
                .map(role -> "user '" + name + "' has the name of a role and not the role; give the"
                        + " user another name, or the role");
    }

    /** The line of a users file. */
    String line(String name) {
        return name + "=" + hashes + ROLES + names();
    }

    /** The names of the roles, with commas between. */
    String names() {
        return roles.stream().map(Role::toString).collect(Collectors.joining(","));
    }
}
