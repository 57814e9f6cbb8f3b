package io.entresol.jdbc;

import java.util.List;
import org.infinispan.api.annotations.indexing.Basic;
import org.infinispan.api.annotations.indexing.Embedded;
import org.infinispan.api.annotations.indexing.Indexed;
import org.infinispan.api.annotations.indexing.Text;
import org.infinispan.protostream.GeneratedSchema;
import org.infinispan.protostream.annotations.ProtoComment;
import org.infinispan.protostream.annotations.ProtoEnumValue;
import org.infinispan.protostream.annotations.ProtoField;
import org.infinispan.protostream.annotations.ProtoSchema;

/** Values of the tests' caches, as a program that uses Infinispan has them. */
@Indexed
public class Person {
    /** Where someone is. */
    @Indexed
    public static class Address {
        @Basic(projectable = true, sortable = true)
        @ProtoField(1)
        public String city;

        @ProtoField(2)
        public String street;

        @Basic(projectable = true)
        @ProtoField(number = 3, defaultValue = "DE")
        public String country;
    }

    /** An enumeration. */
    public enum Mood {
        @ProtoEnumValue(0) CALM,
        @ProtoEnumValue(1) GLAD,
        @ProtoEnumValue(7) CROSS
    }

    @Basic(projectable = true, sortable = true)
    @ProtoField(1)
    public String name;

    @Basic(projectable = true, sortable = true, aggregable = true)
    @ProtoField(2)
    public Integer age;

    @Basic(sortable = true)
    @ProtoField(3)
    public Long wealth;

    @Basic(projectable = true, sortable = true)
    @ProtoField(4)
    public Double score;

    @Basic(projectable = true)
    @ProtoField(5)
    public Boolean active;

    @Basic(projectable = true)
    @ProtoField(6)
    public Mood mood;

    @ProtoComment("@SqlTimestamp")
    @Basic(projectable = true, sortable = true)
    @ProtoField(7)
    public Long born;

    @ProtoField(8)
    public byte[] payload;

    @Embedded
    @ProtoField(9)
    public Address address;

    @ProtoField(10)
    public List<String> tags;

    @Text(projectable = true)
    @ProtoField(11)
    public String story;

    @ProtoField(12)
    public String remark;

    /** Their schema. */
    @ProtoSchema(includeClasses = {Person.class, Address.class, Mood.class, Purchase.class,
            Typed.class},
            schemaPackageName = "sample", schemaFileName = "sample.proto")
    public interface Schema extends GeneratedSchema {}
}
