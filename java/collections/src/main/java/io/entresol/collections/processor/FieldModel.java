package io.entresol.collections.processor;

import javax.lang.model.element.ExecutableElement;
import javax.lang.model.type.TypeMirror;

/** A field: its getter, its setter if there is one, and its offset. */
final class FieldModel {
    final String name;
    final ExecutableElement getter;
    final FieldKind kind;
    final long at;
    ExecutableElement setter;

    FieldModel(String name, ExecutableElement getter, FieldKind kind, long at) {
        this.name = name;
        this.getter = getter;
        this.kind = kind;
        this.at = at;
    }

    TypeMirror type() {
        return getter.getReturnType();
    }

    long end() {
        return at + kind.bytes();
    }
}
