package io.entresol.jdbc.internal.column;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.calcite.avatica.util.ByteString;

/** Cells as bytes, between nodes of one version: a letter for the type of each, then its value. */
public final class Cells {
    private Cells() {}

    /** Takes cells. */
    public static final class Output {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        private final DataOutputStream data = new DataOutputStream(bytes);

        public Output add(Object cell) {
            try {
                write(cell);
                return this;
            } catch (IOException failure) {
                throw new UncheckedIOException("memory cannot be written", failure);
            }
        }

        public Output addAll(List<?> cells) {
            add(cells.size());
            cells.forEach(this::add);
            return this;
        }

        private void write(Object cell) throws IOException {
            if (cell == null) {
                data.writeByte('0');
            } else if (cell instanceof Boolean value) {
                data.writeByte(value ? 'T' : 'F');
            } else if (cell instanceof Integer value) {
                data.writeByte('I');
                data.writeInt(value);
            } else if (cell instanceof Long value) {
                data.writeByte('L');
                data.writeLong(value);
            } else if (cell instanceof Float value) {
                data.writeByte('R');
                data.writeFloat(value);
            } else if (cell instanceof Double value) {
                data.writeByte('D');
                data.writeDouble(value);
            } else if (cell instanceof Byte || cell instanceof Short) {
                write(((Number) cell).intValue());
            } else if (cell instanceof BigDecimal value) {
                data.writeByte('N');
                data.writeInt(value.scale());
                write(value.unscaledValue().toByteArray());
            } else if (cell instanceof String value) {
                data.writeByte('S');
                write(value.getBytes(StandardCharsets.UTF_8));
            } else if (cell instanceof ByteString value) {
                data.writeByte('B');
                write(value.getBytes());
            } else {
                throw new IllegalArgumentException("a cell is a " + cell.getClass().getName()
                        + ", which no column has");
            }
        }

        private void write(byte[] value) throws IOException {
            data.writeInt(value.length);
            data.write(value);
        }

        public int size() {
            return bytes.size();
        }

        public byte[] toByteArray() {
            return bytes.toByteArray();
        }
    }

    /** Gives them back, in their order. */
    public static final class Input {
        private final DataInputStream data;

        public Input(byte[] bytes) {
            data = new DataInputStream(new ByteArrayInputStream(bytes));
        }

        public Object next() {
            try {
                int type = data.readByte();
                return switch (type) {
                    case '0' -> null;
                    case 'T' -> true;
                    case 'F' -> false;
                    case 'I' -> data.readInt();
                    case 'L' -> data.readLong();
                    case 'R' -> data.readFloat();
                    case 'D' -> data.readDouble();
                    case 'N' -> decimal(data.readInt());
                    case 'S' -> new String(bytes(), StandardCharsets.UTF_8);
                    case 'B' -> new ByteString(bytes());
                    default -> throw new IOException("a cell begins with byte " + type);
                };
            } catch (IOException failure) {
                throw new UncheckedIOException("what another node sent is no list of cells: are "
                        + "all nodes of one version?", failure);
            }
        }

        private BigDecimal decimal(int scale) throws IOException {
            byte[] unscaled = bytes();
            if (unscaled.length == 0) {
                throw new IOException("a number has no digits");
            }
            return new BigDecimal(new BigInteger(unscaled), scale);
        }

        private byte[] bytes() throws IOException {
            int length = data.readInt();
            byte[] bytes = data.readNBytes(length);
            if (bytes.length < length) {
                throw new IOException("it ends after " + bytes.length + " of " + length + " bytes");
            }
            return bytes;
        }

        public String text() {
            return (String) next();
        }

        public int number() {
            return (Integer) next();
        }

        public List<Object> all() {
            List<Object> cells = new ArrayList<>();
            for (int left = number(); left > 0; left--) {
                cells.add(next());
            }
            return cells;
        }
    }
}
