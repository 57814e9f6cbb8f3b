package io.entresol.collections;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;

/**
 * The types of this JVM, by class and by name. A class has its type in its static field {@code
 * TYPE}; for a class that an annotation made persistent, the type is that of the generated class,
 * which is named in a resource that is called like the class, and like the type.
 */
final class Types {
    /** Folder of resources that name generated classes. */
    static final String FOLDER = "META-INF/entresol/types/";

    private static final ClassValue<ObjectType<?>> OF_CLASS = new ClassValue<>() {
        @Override
        protected ObjectType<?> computeValue(Class<?> type) {
            return find(type);
        }
    };

    private Types() {
    }

    /** The type of a class. */
    static ObjectType<?> of(Class<?> type) {
        return OF_CLASS.get(type);
    }

    /** The type that goes by that name; {@code near} is a class of the program that may know it. */
    static ObjectType<?> named(String name, Class<?> near) {
        ClassLoader context = Thread.currentThread().getContextClassLoader();
        ClassLoader loader = context == null ? near.getClassLoader() : context;
        String told = told(loader, name);
        try {
            ObjectType<?> type = of(Class.forName(told == null ? name : told, true, loader));
            if (type.name().equals(name)) {
                return type;
            }
            throw new IllegalStateException("the heap holds objects of type " + name
                    + ", but the class of that name is of type " + type.name());
        } catch (ClassNotFoundException failure) {
            throw new IllegalStateException("the heap holds objects of type " + name + ", and there"
                    + " is no class of that name. If it was renamed, declare the new one with"
                    + " @Persistent(name = \"" + name + "\")", failure);
        }
    }

    private static ObjectType<?> find(Class<?> type) {
        ObjectType<?> own = declared(type);
        if (own != null) {
            return own;
        }
        String told = told(type.getClassLoader(), type.getName());
        try {
            if (told != null) {
                Class<?> generated = Class.forName(told, true, type.getClassLoader());
                return declared(generated);
            }
        } catch (ClassNotFoundException failure) {
            throw new IllegalArgumentException(type.getName() + " was made persistent by " + told
                    + ", which is not there", failure);
        }
        throw new IllegalArgumentException(type.getName() + " is no class of persistent objects:"
                + " it is not annotated with @Persistent, or the annotation was not processed");
    }

    private static ObjectType<?> declared(Class<?> type) {
        try {
            Field field = type.getDeclaredField("TYPE");
            field.setAccessible(true);
            Object value = field.get(null);
            return value instanceof ObjectType ? (ObjectType<?>) value : null;
        } catch (NoSuchFieldException absent) {
            return null;
        } catch (IllegalAccessException failure) {
            throw new IllegalArgumentException("the field TYPE of " + type.getName()
                    + " cannot be read", failure);
        }
    }

    private static String told(ClassLoader loader, String name) {
        if (loader == null) {
            return null;
        }
        try (InputStream in = loader.getResourceAsStream(FOLDER + name)) {
            return in == null ? null : new BufferedReader(
                    new InputStreamReader(in, StandardCharsets.UTF_8)).readLine();
        } catch (IOException failure) {
            throw new IllegalStateException("cannot read " + FOLDER + name, failure);
        }
    }
}
