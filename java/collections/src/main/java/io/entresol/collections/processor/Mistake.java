package io.entresol.collections.processor;

import javax.lang.model.element.Element;

/** What is wrong with a declaration, and where. */
final class Mistake extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Element element;

    Mistake(Element element, String sentence) {
        super(sentence);
        this.element = element;
    }

    Element element() {
        return element;
    }
}
