package io.entresol.collections.processor;

import io.entresol.collections.Fields;
import io.entresol.collections.ObjectHeap;
import io.entresol.collections.Persistent;
import io.entresol.collections.PersistentObject;
import io.entresol.collections.Tracer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import javax.annotation.processing.ProcessingEnvironment;
import javax.lang.model.element.Element;
import javax.lang.model.element.ElementKind;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.NestingKind;
import javax.lang.model.element.TypeElement;
import javax.lang.model.element.VariableElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.type.TypeMirror;
import javax.lang.model.util.ElementFilter;

/** A type as its programmer declared it, checked: every mistake is thrown at its place. */
final class Declared {
    private final TypeElement element;
    private final ProcessingEnvironment environment;
    private final List<FieldModel> fields = new ArrayList<>();

    private Declared(TypeElement element, ProcessingEnvironment environment) {
        this.element = element;
        this.environment = environment;
    }

    static Declared of(TypeElement element, ProcessingEnvironment environment) {
        Declared declared = new Declared(element, environment);
        declared.checkType();
        declared.readFields();
        return declared;
    }

    TypeElement element() {
        return element;
    }

    List<FieldModel> fields() {
        return fields;
    }

    /** Fields that are given when an object is made. */
    List<FieldModel> fixed() {
        return fields.stream().filter(field -> field.setter == null).collect(Collectors.toList());
    }

    boolean isInterface() {
        return element.getKind() == ElementKind.INTERFACE;
    }

    boolean isPublic() {
        return element.getModifiers().contains(Modifier.PUBLIC);
    }

    String packageName() {
        return environment.getElementUtils().getPackageOf(element).getQualifiedName().toString();
    }

    /** The name in the source, with the classes around it. */
    String sourceName() {
        return element.getQualifiedName().toString();
    }

    String binaryName() {
        return environment.getElementUtils().getBinaryName(element).toString();
    }

    /** The name in heaps. */
    String name() {
        String given = element.getAnnotation(Persistent.class).name();
        return given.isEmpty() ? binaryName() : given;
    }

    String generatedSimpleName() {
        String inside = packageName().isEmpty()
                ? binaryName() : binaryName().substring(packageName().length() + 1);
        return "Persistent" + inside.replace('$', '_');
    }

    String generatedName() {
        return packageName().isEmpty()
                ? generatedSimpleName() : packageName() + "." + generatedSimpleName();
    }

    /** Bytes of an object's block. */
    long bytes() {
        return fields.isEmpty() ? Fields.FIRST_AT : fields.get(fields.size() - 1).end();
    }

    String layout() {
        return fields.stream().map(field -> field.name + " " + field.kind.layout())
                .collect(Collectors.joining(", "));
    }

    private void checkType() {
        require(element.getTypeParameters().isEmpty(), element,
                "a persistent type cannot be generic: heaps do not know its arguments");
        require(element.getNestingKind() != NestingKind.MEMBER
                || element.getModifiers().contains(Modifier.STATIC) || isInterface(), element,
                "a persistent class inside another one must be static");
        for (Element around = element; around instanceof TypeElement;
                around = around.getEnclosingElement()) {
            require(!around.getModifiers().contains(Modifier.PRIVATE), element,
                    "a persistent type cannot be private: the class of its objects, in the same"
                    + " package, must see it");
        }
        if (isInterface()) {
            return;
        }
        require(element.getKind() == ElementKind.CLASS, element,
                "only an interface or an abstract class can be persistent");
        require(!element.getModifiers().contains(Modifier.FINAL), element,
                "a persistent class cannot be final: the class of its objects extends it");
        require(element.getModifiers().contains(Modifier.ABSTRACT), element,
                "a persistent class must be abstract: its fields are abstract methods");
        require(isObject(element.asType()), element,
                "a persistent class must extend " + PersistentObject.class.getName()
                + "; or make it an interface");
        require(hasConstructor(), element, "a persistent class needs a constructor"
                + " (ObjectHeap objects, long handle) that is not private");
    }

    private boolean isObject(TypeMirror type) {
        return environment.getTypeUtils().isSubtype(type, environment.getElementUtils()
                .getTypeElement(PersistentObject.class.getName()).asType());
    }

    /** Whether the class tells a tracer more than its fields. */
    boolean tracesItself() {
        for (ExecutableElement method : methods(element)) {
            if (method.getSimpleName().contentEquals("trace")
                    && method.getParameters().size() == 1
                    && TypeText.of(method.getParameters().get(0).asType())
                            .equals(Tracer.class.getName())
                    && !method.getModifiers().contains(Modifier.ABSTRACT)) {
                require(!method.getModifiers().contains(Modifier.FINAL), method, "trace cannot be"
                        + " final: the class of the objects adds the fields to it");
                return !isInterface();
            }
        }
        return false;
    }

    private boolean hasConstructor() {
        for (ExecutableElement constructor
                : ElementFilter.constructorsIn(element.getEnclosedElements())) {
            List<? extends VariableElement> parameters = constructor.getParameters();
            if (parameters.size() == 2 && !constructor.getModifiers().contains(Modifier.PRIVATE)
                    && parameters.get(0).asType().toString().equals(ObjectHeap.class.getName())
                    && parameters.get(1).asType().getKind() == TypeKind.LONG) {
                return true;
            }
        }
        return false;
    }

    private void readFields() {
        Map<String, FieldModel> named = new LinkedHashMap<>();
        List<ExecutableElement> setters = new ArrayList<>();
        long end = Fields.FIRST_AT;
        for (ExecutableElement method : abstractMethods()) {
            require(method.getTypeParameters().isEmpty(), method,
                    "an accessor of a field cannot be generic");
            boolean isVoid = method.getReturnType().getKind() == TypeKind.VOID;
            if (method.getParameters().size() == 1 && isVoid) {
                setters.add(method);
                continue;
            }
            require(method.getParameters().isEmpty() && !isVoid, method,
                    "an abstract method of a persistent type reads a field (no parameter) or"
                    + " changes it (one parameter, no result)");
            FieldModel field = field(method, end);
            require(named.put(field.name, field) == null, method,
                    "the field " + field.name + " is read by two methods");
            end = field.end();
        }
        for (ExecutableElement setter : setters) {
            pair(setter, named);
        }
        fields.addAll(named.values());
    }

    private FieldModel field(ExecutableElement getter, long end) {
        TypeMirror type = getter.getReturnType();
        FieldKind kind = FieldKind.of(type, environment);
        require(kind != null, getter, type + " cannot be the type of a field: it is neither a"
                + " primitive, a box of one, String, UUID, byte[] or Object, nor persistent");
        long at = (end + kind.bytes() - 1) / kind.bytes() * kind.bytes();
        return new FieldModel(property(getter, kind), getter, kind, at);
    }

    private void pair(ExecutableElement setter, Map<String, FieldModel> named) {
        String name = stripped(setter.getSimpleName().toString(), "set");
        FieldModel field = named.get(name);
        require(field != null, setter, "nothing reads the field " + name + " that this changes: "
                + "declare " + name + "() or get" + upper(name) + "()");
        TypeMirror given = setter.getParameters().get(0).asType();
        require(environment.getTypeUtils().isSameType(given, field.type()), setter,
                "the field " + name + " is read as " + field.type() + " and changed as " + given);
        require(field.setter == null, setter,
                "the field " + name + " is changed by two methods");
        field.setter = setter;
    }

    /** In the order of the source; fields are declared in the type itself. */
    private List<ExecutableElement> abstractMethods() {
        List<ExecutableElement> own = new ArrayList<>();
        for (ExecutableElement method
                : ElementFilter.methodsIn(element.getEnclosedElements())) {
            if (method.getModifiers().contains(Modifier.ABSTRACT) && !isThere(method)) {
                own.add(method);
            }
        }
        for (ExecutableElement method : methods(element)) {
            boolean inherited = method.getModifiers().contains(Modifier.ABSTRACT)
                    && !method.getEnclosingElement().equals(element);
            boolean known = method.getEnclosingElement().toString()
                    .equals(PersistentObject.class.getName());
            require(!inherited || known, element, "the abstract method " + method + " of "
                    + method.getEnclosingElement() + " is inherited: declare it again here, so"
                    + " that the order of the fields is known");
        }
        return own;
    }

    /** Whether all objects have a method, so that it is no field. */
    private boolean isThere(ExecutableElement method) {
        TypeElement base =
                environment.getElementUtils().getTypeElement(PersistentObject.class.getName());
        for (ExecutableElement known : methods(base)) {
            Set<Modifier> seen = known.getModifiers();
            if (!known.getSimpleName().equals(method.getSimpleName())
                    || !sameParameters(known, method)
                    || !seen.contains(Modifier.PUBLIC) && !seen.contains(Modifier.PROTECTED)) {
                continue;
            }
            require(isInterface() && seen.contains(Modifier.PUBLIC), method, method
                    + " is a method of " + known.getEnclosingElement() + " and cannot be a field's");
            return true;
        }
        return false;
    }

    private boolean sameParameters(ExecutableElement one, ExecutableElement other) {
        int count = one.getParameters().size();
        boolean same = count == other.getParameters().size();
        for (int index = 0; same && index < count; index++) {
            same = environment.getTypeUtils().isSameType(one.getParameters().get(index).asType(),
                    other.getParameters().get(index).asType());
        }
        return same;
    }

    private List<ExecutableElement> methods(TypeElement type) {
        return ElementFilter.methodsIn(environment.getElementUtils().getAllMembers(type));
    }

    private static String property(ExecutableElement getter, FieldKind kind) {
        String name = getter.getSimpleName().toString();
        if (kind.isTruth()) {
            String stripped = stripped(name, "is");
            if (!stripped.equals(name)) {
                return stripped;
            }
        }
        return stripped(name, "get");
    }

    private static String stripped(String name, String prefix) {
        boolean has = name.length() > prefix.length() && name.startsWith(prefix)
                && Character.isUpperCase(name.charAt(prefix.length()));
        return !has ? name : Character.toLowerCase(name.charAt(prefix.length()))
                + name.substring(prefix.length() + 1);
    }

    private static String upper(String name) {
        return Character.toUpperCase(name.charAt(0)) + name.substring(1);
    }

    private static void require(boolean held, Element at, String sentence) {
        if (!held) {
            throw new Mistake(at, sentence);
        }
    }
}
