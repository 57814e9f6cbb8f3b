package io.entresol.jdbc.internal.column;

import org.infinispan.protostream.ImmutableSerializationContext;
import org.infinispan.protostream.TagHandler;
import org.infinispan.protostream.WrappedMessage;
import org.infinispan.protostream.descriptors.Descriptor;
import org.infinispan.protostream.descriptors.FieldDescriptor;
import org.infinispan.protostream.descriptors.GenericDescriptor;

/** The parts of the message around a value: the value's type, and its own message. */
public final class Wrapped implements TagHandler {
    private String name;
    private Integer id;
    private byte[] message = new byte[0];

    private Wrapped() {}

    /** Takes a value apart, in the form in which a cache keeps it. */
    public static Wrapped of(Descriptor wrapper, byte[] bytes) {
        Wrapped value = new Wrapped();
        Messages.parse(value, wrapper, bytes);
        return value;
    }

    public byte[] message() {
        return message;
    }

    boolean isOf(Descriptor type) {
        return name != null ? name.equals(type.getFullName())
                : id != null && id.equals(type.getTypeId());
    }

    /** Returns the name of its type; null for a value without one, such as a number or a text. */
    public String type(ImmutableSerializationContext context) {
        return name != null || id == null ? name
                : context.getDescriptorByTypeId(id).getFullName();
    }

    @Override
    public void onTag(int number, FieldDescriptor field, Object value) {
        switch (number) {
            case WrappedMessage.WRAPPED_TYPE_NAME -> name = (String) value;
            case WrappedMessage.WRAPPED_TYPE_ID -> id = ((Number) value).intValue();
            case WrappedMessage.WRAPPED_MESSAGE -> message = (byte[]) value;
            default -> { }
        }
    }

    @Override
    public void onStart(GenericDescriptor type) {}

    @Override
    public void onStartNested(int number, FieldDescriptor field) {}

    @Override
    public void onEndNested(int number, FieldDescriptor field) {}

    @Override
    public void onEnd() {}
}
