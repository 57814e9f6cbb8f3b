package io.entresol.collections;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Marks an interface, or an abstract class that extends {@link PersistentObject}, as a type of
 * persistent objects. Its abstract methods are the accessors of fields, in the order of
 * declaration.
 *
 * <pre>
 * &#64;Persistent
 * interface Employee {
 *     String name();
 *     long salary();
 *     void salary(long salary);
 * }
 *
 * Employee ada = PersistentEmployee.create(objects, "Ada");
 * ada.salary(5000);
 * </pre>
 *
 * A field {@code x} has a method {@code x()}, {@code getX()} or {@code isX()}; with a method {@code
 * x(v)} or {@code setX(v)} the field can be changed, without one the value is given when the object
 * is made. The type of a field is a primitive, a box of one, String, UUID, byte[], Object, or a
 * type of persistent objects. The compiler writes the class {@code PersistentX}, which has the
 * factory.
 *
 * <p>Fields keep their name, type and order as long as there are objects; new fields go to the end,
 * and are zero or null in older objects.
 */
@Documented
@Retention(RetentionPolicy.CLASS)
@Target(ElementType.TYPE)
public @interface Persistent {
    /** What heaps know the class by: its binary name, unless it was renamed since. */
    String name() default "";
}
