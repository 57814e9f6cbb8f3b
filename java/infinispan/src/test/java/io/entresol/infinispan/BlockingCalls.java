package io.entresol.infinispan;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.infinispan.commons.executors.NonBlockingResource;
import org.infinispan.commons.internal.CommonsBlockHoundIntegration;
import org.infinispan.commons.test.CommonsTestBlockHoundIntegration;
import org.infinispan.util.CoreBlockHoundIntegration;
import org.testng.IInvokedMethod;
import org.testng.IInvokedMethodListener;
import org.testng.ISuite;
import org.testng.ISuiteListener;
import org.testng.ITestResult;
import reactor.blockhound.BlockHound;

/**
 * Fails tests in which the store blocks a thread that must not be blocked: one of Infinispan's
 * non-blocking threads, or one that Infinispan's tests declare to be such. BlockHound finds calls
 * of the JDK that block; calls that wait in the native library are declared here.
 *
 * <p>Blocking calls of Infinispan itself do not count. TestNG finds this listener by its service.
 */
public final class BlockingCalls implements ISuiteListener, IInvokedMethodListener {
    private static final Queue<Error> FOUND = new ConcurrentLinkedQueue<>();
    /** Whose methods block for others, who call them. */
    private static final List<String> CALLED = List.of("java.", "jdk.", "sun.", "io.reactivex.",
            "reactor.blockhound.", BlockingCalls.class.getName());
    private static final String ENGINE = "io.entresol.Engine";
    private static final String NATIVE = "io.entresol.heap.engine.NativeStore";
    /** Classes that are not tests. */
    private static final Pattern OURS =
            Pattern.compile("io\\.entresol\\.(?!.*Test(\\$|$)).*");
    private static boolean installed;

    @Override
    public void onStart(ISuite suite) {
        if (installed) {
            return;
        }
        installed = true;
        find(FOUND::add);
    }

    /** Gives whatever is found from now on to {@code found}, before it is thrown. */
    public static void find(Consumer<Error> found) {
        // Not in the calling thread: who installs it is never looked at.
        Thread installing = new Thread(() -> install(found));
        installing.start();
        try {
            installing.join();
        } catch (InterruptedException interrupted) {
            throw new AssertionError(interrupted);
        }
    }

    @Override
    public void beforeInvocation(IInvokedMethod method, ITestResult result) {
        // What is found is of this one from here on.
    }

    @Override
    public void afterInvocation(IInvokedMethod method, ITestResult result) {
        Error first = FOUND.poll();
        if (first != null) {
            for (Error next = FOUND.poll(); next != null; next = FOUND.poll()) {
                first.addSuppressed(next);
            }
            result.setThrowable(first);
            result.setStatus(ITestResult.FAILURE);
        }
    }

    /** What was found since the last test, which then does not fail for it. */
    static Error taken() {
        return FOUND.poll();
    }

    @Override
    public void onFinish(ISuite suite) {
        if (!FOUND.isEmpty()) {
            throw FOUND.poll();
        }
    }

    private static void install(Consumer<Error> found) {
        BlockHound.builder()
                .with(new CommonsBlockHoundIntegration())
                .with(new CoreBlockHoundIntegration())
                .with(new CommonsTestBlockHoundIntegration())
                .markAsBlocking(ENGINE, "run", "(Lio/entresol/Rows$Row;I)Lio/entresol/Outcome;")
                .markAsBlocking(ENGINE, "await", "(Ljava/util/concurrent/CompletableFuture;)"
                        + "Ljava/lang/Object;")
                .markAsBlocking(NATIVE, "open", "(JJ)J")
                .markAsBlocking(NATIVE, "reap", "(JJ)J")
                .markAsBlocking(NATIVE, "close", "(J)J")
                .blockingMethodCallback(call -> look(call.toString(), found))
                .install();
    }

    private static void look(String call, Consumer<Error> found) {
        Error blocked = new AssertionError("the store blocks " + Thread.currentThread() + " by "
                + call);
        List<StackTraceElement> stack = Stream.of(blocked.getStackTrace())
                .filter(frame -> CALLED.stream().noneMatch(frame.getClassName()::startsWith))
                .toList();
        boolean ours = !stack.isEmpty() && OURS.matcher(stack.get(0).getClassName()).matches();
        if (ours && !readsForItsCaller(stack)) {
            found.accept(blocked);
            throw blocked;
        }
    }

    /** A thread that waits for its own loads reads by itself; none of Infinispan's ever does. */
    private static boolean readsForItsCaller(List<StackTraceElement> stack) {
        boolean infinispans =
                Thread.currentThread().getThreadGroup() instanceof NonBlockingResource;
        return !infinispans && stack.stream().anyMatch(frame ->
                frame.getClassName().equals(OpenStore.class.getName())
                        && frame.getMethodName().equals("find"));
    }
}
