package io.entresol.collections;

/** A class with code of its own, known to heaps by another name. */
@Persistent(name = "geometry.Point")
abstract class Point extends PersistentObject {
    Point(ObjectHeap objects, long handle) {
        super(objects, handle);
    }

    abstract byte kind();

    abstract double x();

    abstract double y();

    double length() {
        return Math.hypot(x(), y());
    }
}
