package io.entresol.collections.processor;

import java.util.stream.Collectors;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.ArrayType;
import javax.lang.model.type.DeclaredType;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.type.WildcardType;

/**
 * Types as written in a source, without their annotations, which compilers print where no
 * annotation is allowed.
 */
final class TypeText {
    private TypeText() {
    }

    /** With arguments. */
    static String of(TypeMirror type) {
        switch (type.getKind()) {
            case DECLARED:
                String arguments = ((DeclaredType) type).getTypeArguments().stream()
                        .map(TypeText::of).collect(Collectors.joining(", "));
                return erased(type) + (arguments.isEmpty() ? "" : "<" + arguments + ">");
            case ARRAY:
                return of(((ArrayType) type).getComponentType()) + "[]";
            case WILDCARD:
                WildcardType wildcard = (WildcardType) type;
                if (wildcard.getExtendsBound() != null) {
                    return "? extends " + of(wildcard.getExtendsBound());
                }
                return wildcard.getSuperBound() == null
                        ? "?" : "? super " + of(wildcard.getSuperBound());
            default:
                return erased(type);
        }
    }

    /** Without arguments. */
    static String erased(TypeMirror type) {
        switch (type.getKind()) {
            case DECLARED:
                return ((TypeElement) ((DeclaredType) type).asElement())
                        .getQualifiedName().toString();
            case ARRAY:
                return erased(((ArrayType) type).getComponentType()) + "[]";
            default:
                return type.getKind().isPrimitive()
                        ? type.getKind().name().toLowerCase(java.util.Locale.ROOT)
                        : type.toString();
        }
    }
}
