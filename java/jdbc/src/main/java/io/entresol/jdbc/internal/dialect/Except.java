package io.entresol.jdbc.internal.dialect;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;

/** Objects that act like others, except for some methods. */
public final class Except {
    private Except() {}

    /** What is done instead of a method. */
    public interface Instead {
        /** The result; {@code plain} is what the method itself does. */
        Object of(Object[] arguments, Plain plain) throws Throwable;
    }

    /** What a method does. */
    public interface Plain {
        /** Its result. */
        Object result() throws Throwable;
    }

    /** One like another, but for the methods of some names. */
    public static <T> T of(Class<T> type, T like, Map<String, Instead> methods) {
        return type.cast(Proxy.newProxyInstance(Except.class.getClassLoader(),
                new Class<?>[] {type}, (object, method, arguments) -> {
                    Plain plain = () -> {
                        try {
                            return method.invoke(like, arguments);
                        } catch (InvocationTargetException failure) {
                            throw failure.getCause();
                        }
                    };
                    Instead instead = methods.get(method.getName());
                    return instead == null ? plain.result() : instead.of(arguments, plain);
                }));
    }
}
