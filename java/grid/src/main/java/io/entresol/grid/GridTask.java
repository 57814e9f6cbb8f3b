package io.entresol.grid;

import io.entresol.infinispan.Privileged;
import javax.security.auth.Subject;
import org.infinispan.entresol.Trusted;
import org.infinispan.security.AuthorizationPermission;
import org.infinispan.security.GroupPrincipal;
import org.infinispan.security.Security;
import org.infinispan.security.impl.Authorizer;
import org.infinispan.tasks.ServerTask;
import org.infinispan.tasks.TaskContext;
import org.infinispan.tasks.TaskExecutionMode;
import org.infinispan.tasks.TaskInstantiationMode;

/** A task that every node carries out when one of them is asked; each answers with a text. */
abstract class GridTask implements ServerTask<String> {
    private final String name;
    /** What a user must be permitted besides to carry out tasks; null: nothing. */
    private final AuthorizationPermission needed;
    private TaskContext context;

    GridTask(String name) {
        this(name, null);
    }

    GridTask(String name, AuthorizationPermission needed) {
        this.name = name;
        this.needed = needed;
    }

    final TaskContext context() {
        return context;
    }

    @Override
    public final void setTaskContext(TaskContext given) {
        context = given;
    }

    /**
     * Whoever may carry it out need not be an admin for what it looks at. Each node asks for the
     * permission, of the user whom the task came with: Infinispan looks at the role that a task may
     * demand only where the task is carried out on a cache.
     */
    @Override
    public final String call() {
        if (needed != null) {
            Privileged.getComponent(context.getCacheManager(), Authorizer.class)
                    .checkPermission(byNames(Security.getSubject()), needed);
        }
        return Trusted.call(this::answer);
    }

    /** On its way to another node a user's role becomes a name as any: no user has one's name. */
    private static Subject byNames(Subject user) {
        if (user == null) {
            return null;
        }
        Subject named = new Subject();
        named.getPrincipals().addAll(user.getPrincipals());
        user.getPrincipals().forEach(each ->
                named.getPrincipals().add(new GroupPrincipal(each.getName())));
        return named;
    }

    /** The node's answer. */
    abstract String answer();

    @Override
    public final String getName() {
        return name;
    }

    @Override
    public final TaskExecutionMode getExecutionMode() {
        return TaskExecutionMode.ALL_NODES;
    }

    @Override
    public final TaskInstantiationMode getInstantiationMode() {
        return TaskInstantiationMode.ISOLATED;
    }
}
