package io.entresol.infinispan;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/** The files or device nodes under an open store, as they were when it was opened. */
final class DeviceFiles {
    private static final String INSTANCE = "{n}";

    private final Map<Path, BasicFileAttributes> opened = new LinkedHashMap<>();

    private DeviceFiles() {
    }

    /** Of a store that is open: all of a list of devices, or the first that exists. */
    static DeviceFiles of(List<Path> listed, boolean striped) {
        DeviceFiles files = new DeviceFiles();
        for (Path path : listed) {
            try {
                files.opened.put(path, Files.readAttributes(path, BasicFileAttributes.class));
            } catch (IOException absent) {
                continue;
            }
            if (!striped) {
                break;
            }
        }
        return files;
    }

    /** The paths of a list, as the store reads it. */
    static List<Path> listed(String devices) {
        List<Path> paths = new ArrayList<>();
        for (String path : devices.split(",")) {
            paths.add(Path.of(path.strip().replace(INSTANCE, "0")));
        }
        return paths;
    }

    /** Those that were there. */
    List<Path> paths() {
        return List.copyOf(opened.keySet());
    }

    /** What became of the first that is not what it was; empty if all are. */
    Optional<String> change() {
        for (Map.Entry<Path, BasicFileAttributes> each : opened.entrySet()) {
            BasicFileAttributes was = each.getValue();
            try {
                BasicFileAttributes is =
                        Files.readAttributes(each.getKey(), BasicFileAttributes.class);
                if (!Objects.equals(is.fileKey(), was.fileKey())) {
                    return Optional.of(each.getKey() + " was replaced by another file or device");
                }
                if (is.isRegularFile() && is.size() < was.size()) {
                    return Optional.of(each.getKey() + " was cut from " + was.size() + " to "
                            + is.size() + " bytes");
                }
            } catch (IOException gone) {
                return Optional.of(each.getKey() + " is gone");
            }
        }
        return Optional.empty();
    }

    @Override
    public String toString() {
        return String.join(", ", opened.keySet().stream().map(Path::toString).toList());
    }
}
