package io.entresol.collections.processor;

import java.util.stream.Collectors;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;

/** The source of the class of a type's objects. */
final class ClassText {
    private final Declared declared;
    private final StringBuilder text = new StringBuilder();

    ClassText(Declared declared) {
        this.declared = declared;
    }

    String text() {
        String simple = declared.generatedSimpleName();
        if (!declared.packageName().isEmpty()) {
            line("package " + declared.packageName() + ";");
            line("");
        }
        line("import io.entresol.collections.Fields;");
        line("import io.entresol.collections.ObjectHeap;");
        line("import io.entresol.collections.ObjectType;");
        line("import io.entresol.collections.PersistentObject;");
        line("import io.entresol.collections.Tracer;");
        line("");
        line("/** Objects of {@link " + declared.sourceName() + "}. */");
        line("@SuppressWarnings(\"all\")");
        line(visibility() + "final class " + simple + (declared.isInterface()
                ? " extends PersistentObject implements " : " extends ")
                + declared.sourceName() + " {");
        line("    /** What heaps know of the class. */");
        line("    public static final ObjectType<" + simple + "> TYPE = ObjectType.of(");
        line("            " + simple + ".class, " + declared.sourceName() + ".class,");
        line("            \"" + declared.name() + "\",");
        line("            \"" + declared.layout() + "\", " + simple + "::new);");
        line("");
        line("    private final Fields fields;");
        line("");
        line("    private " + simple + "(ObjectHeap objects, long handle) {");
        line("        super(objects, handle);");
        line("        fields = new Fields(objects, block(), " + declared.bytes() + "L);");
        line("    }");
        factory(simple);
        declared.fields().forEach(this::accessors);
        trace();
        line("}");
        return text.toString();
    }

    private void factory(String simple) {
        String parameters = declared.fixed().stream()
                .map(field -> ", " + TypeText.of(field.type()) + " " + argument(field))
                .collect(Collectors.joining());
        line("");
        line("    /** Makes an object. */");
        line("    " + visibility() + "static " + declared.sourceName()
                + " create(ObjectHeap objects" + parameters + ") {");
        line("        return objects.run(() -> {");
        line("            " + simple + " made = TYPE.create(objects, " + declared.bytes()
                + "L, range -> { });");
        for (FieldModel field : declared.fixed()) {
            line("            made.fields.set" + field.kind.access() + "(" + field.at + "L, "
                    + argument(field) + ");");
        }
        line("            return made;");
        line("        });");
        line("    }");
    }

    private void accessors(FieldModel field) {
        String type = TypeText.of(field.type());
        line("");
        line("    @Override");
        line("    " + visibility(field.getter) + type + " " + field.getter.getSimpleName()
                + "() {");
        line("        requireMade();");
        line("        return fields." + (field.kind.isPrimitive() ? "" : "<" + type + ">") + "get"
                + field.kind.access() + "(" + field.at + "L);");
        line("    }");
        if (field.setter != null) {
            line("");
            line("    @Override");
            line("    " + visibility(field.setter) + "void " + field.setter.getSimpleName() + "("
                    + type + " value) {");
            line("        requireMade();");
            line("        fields.set" + field.kind.access() + "(" + field.at + "L, value);");
            line("    }");
        }
    }

    private void trace() {
        line("");
        line("    @Override");
        line("    protected void trace(Tracer tracer) {");
        if (declared.tracesItself()) {
            line("        super.trace(tracer);");
        }
        line("        fields.trace(tracer);");
        for (FieldModel field : declared.fields()) {
            if (!field.kind.isPrimitive()) {
                line("        fields.trace(" + field.at + "L, tracer);");
            }
        }
        line("    }");
    }

    private String visibility() {
        return declared.isPublic() ? "public " : "";
    }

    private String visibility(ExecutableElement method) {
        if (declared.isInterface() || method.getModifiers().contains(Modifier.PUBLIC)) {
            return "public ";
        }
        return method.getModifiers().contains(Modifier.PROTECTED) ? "protected " : "";
    }

    /** A parameter's name that no keyword and no other name here can be. */
    private static String argument(FieldModel field) {
        return field.name + "_";
    }

    private void line(String line) {
        text.append(line).append('\n');
    }
}
