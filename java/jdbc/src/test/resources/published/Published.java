import io.entresol.infinispan.EntresolStoreConfigurationBuilder;
import io.entresol.jdbc.Driver;
import io.entresol.jdbc.SqlServer;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.List;
import org.infinispan.commons.dataconversion.MediaType;
import org.infinispan.configuration.cache.ConfigurationBuilder;
import org.infinispan.configuration.cache.IndexStartupMode;
import org.infinispan.configuration.cache.IndexStorage;
import org.infinispan.configuration.global.GlobalConfigurationBuilder;
import org.infinispan.manager.DefaultCacheManager;

/** A program that names no artefact but this one: SQL in its process, and served to itself. */
public final class Published {
    private static final String SCHEMA = """
            syntax = "proto3"; package things;
            /** @Indexed */ message Thing {
              /** @Basic(projectable=true, sortable=true) */ optional string name = 1;
              optional int32 age = 2;
            }
            """;

    public static void main(String[] arguments) throws Exception {
        GlobalConfigurationBuilder global = new GlobalConfigurationBuilder().nonClusteredDefault();
        global.globalState().enable().persistentLocation(arguments[0]);
        try (DefaultCacheManager manager = new DefaultCacheManager(global.build())) {
            manager.<String, String>getCache("___protobuf_metadata").put("thing.proto", SCHEMA);
            ConfigurationBuilder things = new ConfigurationBuilder();
            things.encoding().mediaType(MediaType.APPLICATION_PROTOSTREAM);
            things.memory().maxCount(10);
            things.indexing().enable().storage(IndexStorage.LOCAL_HEAP)
                    .startupMode(IndexStartupMode.NONE).addIndexedEntities("things.Thing");
            things.persistence().addStore(EntresolStoreConfigurationBuilder.class)
                    .capacity("64MiB").memory("64MiB");
            manager.defineConfiguration("things", things.build());
            try (SqlServer server = SqlServer.start(manager, 0);
                    Connection own = Driver.connect(manager);
                    Connection remote = DriverManager.getConnection(
                            "jdbc:entresol:remote:http://127.0.0.1:" + server.port())) {
                for (Connection each : List.of(own, remote)) {
                    try (Statement statement = each.createStatement()) {
                        statement.executeUpdate("insert into things (_key, name, age) values ('"
                                + (each == own ? "own" : "remote") + "', 'Ann', 7)");
                        ResultSet rows = statement.executeQuery(
                                "select sum(age) from things where name like 'A%'");
                        rows.next();
                        System.out.println("sum " + rows.getLong(1));
                    }
                }
            }
        }
        System.exit(0);
    }
}
