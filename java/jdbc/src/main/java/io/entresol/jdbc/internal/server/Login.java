package io.entresol.jdbc.internal.server;

import java.nio.charset.StandardCharsets;
import java.util.function.BiPredicate;
import javax.servlet.ServletRequest;
import org.eclipse.jetty.security.ConstraintMapping;
import org.eclipse.jetty.security.ConstraintSecurityHandler;
import org.eclipse.jetty.security.DefaultIdentityService;
import org.eclipse.jetty.security.IdentityService;
import org.eclipse.jetty.security.LoginService;
import org.eclipse.jetty.security.authentication.BasicAuthenticator;
import org.eclipse.jetty.server.UserIdentity;
import org.eclipse.jetty.util.security.Constraint;

/** Lets requests pass that name a user and the right password, by HTTP's basic authentication. */
public final class Login implements LoginService {
    private static final String REALM = "entresol";
    private static final String USER = "user";

    private final BiPredicate<String, String> users;
    private IdentityService identities = new DefaultIdentityService();

    private Login(BiPredicate<String, String> users) {
        this.users = users;
    }

    /** What stands before all else that answers requests. */
    public static ConstraintSecurityHandler of(BiPredicate<String, String> users) {
        Constraint known = new Constraint(Constraint.__BASIC_AUTH, USER);
        known.setAuthenticate(true);
        ConstraintMapping everywhere = new ConstraintMapping();
        everywhere.setPathSpec("/*");
        everywhere.setConstraint(known);
        ConstraintSecurityHandler before = new ConstraintSecurityHandler();
        before.setRealmName(REALM);
        BasicAuthenticator basic = new BasicAuthenticator();
        // As clients have it, the driver's among them; else letters beyond ASCII are others.
        basic.setCharset(StandardCharsets.UTF_8);
        before.setAuthenticator(basic);
        before.setLoginService(new Login(users));
        before.addConstraintMapping(everywhere);
        return before;
    }

    @Override
    public String getName() {
        return REALM;
    }

    @Override
    public UserIdentity login(String name, Object password, ServletRequest request) {
        return name == null || password == null || !users.test(name, password.toString()) ? null
                : identities.newUserIdentity(new javax.security.auth.Subject(), () -> name,
                        new String[] {USER});
    }

    @Override
    public boolean validate(UserIdentity user) {
        return true;
    }

    @Override
    public IdentityService getIdentityService() {
        return identities;
    }

    @Override
    public void setIdentityService(IdentityService service) {
        identities = service;
    }

    @Override
    public void logout(UserIdentity user) {
        // Each request logs in anew.
    }
}
