package io.entresol.collections.processor;

import io.entresol.collections.Persistent;
import java.io.IOException;
import java.io.Writer;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.Filer;
import javax.annotation.processing.RoundEnvironment;
import javax.annotation.processing.SupportedAnnotationTypes;
import javax.lang.model.SourceVersion;
import javax.lang.model.element.Element;
import javax.lang.model.element.TypeElement;
import javax.tools.Diagnostic;
import javax.tools.StandardLocation;

/**
 * Writes, for each type that is annotated with {@link Persistent}, the class of its objects, and
 * the resources that lead from the type and from its name in heaps to that class. Mistakes are
 * errors at their place.
 */
@SupportedAnnotationTypes("io.entresol.collections.Persistent")
public final class PersistentProcessor extends AbstractProcessor {
    private static final String FOLDER = "META-INF/entresol/types/";

    /** The compiler makes one by itself. */
    public PersistentProcessor() {
    }

    @Override
    public SourceVersion getSupportedSourceVersion() {
        return SourceVersion.latestSupported();
    }

    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
        for (Element element : round.getElementsAnnotatedWith(Persistent.class)) {
            try {
                write(Declared.of((TypeElement) element, processingEnv));
            } catch (Mistake mistake) {
                processingEnv.getMessager().printMessage(
                        Diagnostic.Kind.ERROR, mistake.getMessage(), mistake.element());
            } catch (IOException failure) {
                processingEnv.getMessager().printMessage(Diagnostic.Kind.ERROR,
                        "the class of these objects cannot be written: " + failure, element);
            }
        }
        return true;
    }

    private void write(Declared declared) throws IOException {
        Filer filer = processingEnv.getFiler();
        String generated = declared.generatedName();
        try (Writer out = filer.createSourceFile(generated, declared.element()).openWriter()) {
            out.write(new ClassText(declared).text());
        }
        Set<String> names = new TreeSet<>(List.of(declared.name(), declared.binaryName()));
        for (String name : names) {
            try (Writer out = filer.createResource(StandardLocation.CLASS_OUTPUT, "",
                    FOLDER + name, declared.element()).openWriter()) {
                out.write(generated + "\n");
            }
        }
    }
}
