package io.entresol.infinispan;

import java.util.ArrayList;
import java.util.List;
import org.testng.IMethodInstance;
import org.testng.IMethodInterceptor;
import org.testng.ITestContext;

/** Leaves out what fails at times with any store, as Infinispan's own build does. */
public final class KnownFaults implements IMethodInterceptor {
    /**
     * ISPN-11422: who puts what is absent because it has just ended may find it there. Names have
     * the test's parameters behind them.
     */
    private static final String WRITE = "testWriteExpiredEntry";

    @Override
    public List<IMethodInstance> intercept(List<IMethodInstance> methods, ITestContext context) {
        List<IMethodInstance> stable = new ArrayList<>(methods);
        stable.removeIf(each -> each.getMethod().getMethodName().startsWith(WRITE));
        return stable;
    }
}
