package io.entresol.grid;

import org.infinispan.tasks.ServerTask;
import org.infinispan.tasks.TaskContext;
import org.infinispan.tasks.TaskExecutionMode;
import org.infinispan.tasks.TaskInstantiationMode;

/** A task that every node carries out when one of them is asked; each answers with a text. */
abstract class GridTask implements ServerTask<String> {
    private final String name;
    private TaskContext context;

    GridTask(String name) {
        this.name = name;
    }

    final TaskContext context() {
        return context;
    }

    @Override
    public final void setTaskContext(TaskContext given) {
        context = given;
    }

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
