package io.entresol.jdbc;

import org.infinispan.api.annotations.indexing.Basic;
import org.infinispan.api.annotations.indexing.Indexed;
import org.infinispan.protostream.annotations.ProtoField;

/** A second type of values. */
@Indexed
public class Purchase {
    @Basic(projectable = true, sortable = true)
    @ProtoField(1)
    public String buyer;

    @Basic(projectable = true)
    @ProtoField(2)
    public Integer price;
}
