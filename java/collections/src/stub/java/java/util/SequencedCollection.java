package java.util;

/** What Java 21 and newer have under this name, for a compiler that does not know it. */
public interface SequencedCollection<E> extends Collection<E> {}
