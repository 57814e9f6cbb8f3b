package io.entresol.collections.processor;

import io.entresol.collections.Persistent;
import io.entresol.collections.PersistentObject;
import java.util.Set;
import javax.annotation.processing.ProcessingEnvironment;
import javax.lang.model.element.Element;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;

/**
 * The form in which a field of some type is kept: its bytes, and its word in the names of access
 * methods.
 */
final class FieldKind {
    private static final Set<String> VALUES = Set.of("java.lang.Boolean", "java.lang.Byte",
            "java.lang.Character", "java.lang.Short", "java.lang.Integer", "java.lang.Long",
            "java.lang.Float", "java.lang.Double", "java.lang.String", "java.lang.Object",
            "java.util.UUID", "byte[]");

    private final int bytes;
    private final String access;
    private final String layout;

    private FieldKind(int bytes, String access, String layout) {
        this.bytes = bytes;
        this.access = access;
        this.layout = layout;
    }

    /** The kind of a type; null if no field can have it. */
    static FieldKind of(TypeMirror type, ProcessingEnvironment environment) {
        if (type.getKind().isPrimitive()) {
            String name = type.getKind().name().toLowerCase(java.util.Locale.ROOT);
            String access = Character.toUpperCase(name.charAt(0)) + name.substring(1);
            return new FieldKind(bytes(type.getKind()), access, name);
        }
        Element element = environment.getTypeUtils().asElement(type);
        String erased = TypeText.erased(type);
        if (VALUES.contains(erased)) {
            return new FieldKind(Long.BYTES, "", erased);
        }
        if (!(element instanceof TypeElement)) {
            return null;
        }
        Persistent annotation = element.getAnnotation(Persistent.class);
        if (annotation != null && !annotation.name().isEmpty()) {
            return new FieldKind(Long.BYTES, "", annotation.name());
        }
        TypeMirror base = environment.getElementUtils()
                .getTypeElement(PersistentObject.class.getName()).asType();
        boolean persistent = annotation != null
                || environment.getTypeUtils().isSubtype(
                        environment.getTypeUtils().erasure(type), base);
        String name = environment.getElementUtils().getBinaryName((TypeElement) element).toString();
        return persistent ? new FieldKind(Long.BYTES, "", name) : null;
    }

    int bytes() {
        return bytes;
    }

    /** {@code Long} for {@code getLong}; nothing for what is no primitive. */
    String access() {
        return access;
    }

    boolean isPrimitive() {
        return !access.isEmpty();
    }

    /** Whether it is a boolean, or the box of one. */
    boolean isTruth() {
        return layout.equals("boolean") || layout.equals("java.lang.Boolean");
    }

    /** What heaps are told of the type. */
    String layout() {
        return layout;
    }

    private static int bytes(TypeKind kind) {
        switch (kind) {
            case BOOLEAN:
            case BYTE:
                return 1;
            case CHAR:
            case SHORT:
                return 2;
            case INT:
            case FLOAT:
                return 4;
            default:
                return 8;
        }
    }
}
