package io.entresol.jdbc.internal.server;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.function.BiFunction;
import javax.security.auth.Subject;
import javax.servlet.ServletException;
import javax.servlet.ServletRequest;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.security.ConstraintMapping;
import org.eclipse.jetty.security.ConstraintSecurityHandler;
import org.eclipse.jetty.security.DefaultIdentityService;
import org.eclipse.jetty.security.IdentityService;
import org.eclipse.jetty.security.LoginService;
import org.eclipse.jetty.security.authentication.BasicAuthenticator;
import org.eclipse.jetty.server.Authentication;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.UserIdentity;
import org.eclipse.jetty.server.handler.HandlerWrapper;
import org.eclipse.jetty.util.security.Constraint;
import org.infinispan.entresol.Trusted;
import org.infinispan.security.Security;

/** Lets requests pass that name a user and the right password, by HTTP's basic authentication. */
public final class Login implements LoginService {
    private static final String REALM = "entresol";
    private static final String USER = "user";

    private final BiFunction<String, String, Subject> users;
    private IdentityService identities = new DefaultIdentityService();

    private Login(BiFunction<String, String, Subject> users) {
        this.users = users;
    }

    /** What stands before all else that answers requests. */
    public static ConstraintSecurityHandler of(BiFunction<String, String, Subject> users) {
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

    /** Behind that: has what answers a request be done by the user who asks. */
    public static HandlerWrapper asUser() {
        return new HandlerWrapper() {
            @Override
            public void handle(String target, Request base, HttpServletRequest request,
                    HttpServletResponse response) throws IOException, ServletException {
                Subject user = base.getAuthentication() instanceof Authentication.User known
                        ? known.getUserIdentity().getSubject() : null;
                // Plans ask for the user's permissions; what carries them out asks for none.
                Exception failure = Security.doAs(user, () -> Trusted.call(() -> {
                    try {
                        super.handle(target, base, request, response);
                        return null;
                    } catch (IOException | ServletException thrown) {
                        return thrown;
                    }
                }));
                if (failure instanceof IOException thrown) {
                    throw thrown;
                } else if (failure != null) {
                    throw (ServletException) failure;
                }
            }
        };
    }

    @Override
    public String getName() {
        return REALM;
    }

    @Override
    public UserIdentity login(String name, Object password, ServletRequest request) {
        Subject user = name == null || password == null ? null
                : users.apply(name, password.toString());
        return user == null ? null
                : identities.newUserIdentity(user, () -> name, new String[] {USER});
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
