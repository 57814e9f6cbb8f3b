package io.entresol.jdbc;

import org.infinispan.api.annotations.indexing.Basic;
import org.infinispan.api.annotations.indexing.Indexed;
import org.infinispan.protostream.annotations.ProtoComment;
import org.infinispan.protostream.annotations.ProtoField;

/** A value with two fields of each type: one that the index compares, and one that it does not. */
@Indexed
public class Typed {
    @Basic(projectable = true)
    @ProtoField(1)
    public Boolean truth;

    @ProtoField(2)
    public Boolean plainTruth;

    @Basic(projectable = true, sortable = true)
    @ProtoField(3)
    public Integer integer;

    @ProtoField(4)
    public Integer plainInteger;

    @Basic(projectable = true, sortable = true)
    @ProtoField(5)
    public Long bigint;

    @ProtoField(6)
    public Long plainBigint;

    @Basic(projectable = true, sortable = true)
    @ProtoField(7)
    public Float real;

    @ProtoField(8)
    public Float plainReal;

    @Basic(projectable = true, sortable = true)
    @ProtoField(9)
    public Double wide;

    @ProtoField(10)
    public Double plainWide;

    @Basic(projectable = true, sortable = true)
    @ProtoField(11)
    public String text;

    @ProtoField(12)
    public String plainText;

    @ProtoComment("@SqlTimestamp")
    @Basic(projectable = true, sortable = true)
    @ProtoField(13)
    public Long moment;

    @ProtoComment("@SqlTimestamp")
    @ProtoField(14)
    public Long plainMoment;

    @ProtoField(15)
    public byte[] plainBytes;

    @Basic(projectable = true)
    @ProtoField(16)
    public Person.Mood mood;

    @ProtoField(17)
    public Person.Mood plainMood;
}
