package io.entresol.grid;

import io.entresol.jdbc.TlsFiles;

/** The parts of a server's configuration that depend on the plan of the node. */
final class ServerXml {
    private static final String STORE = "<%s path=\"%s\" password=\"" + TlsFiles.PASSWORD + "\"/>";

    private ServerXml() {
    }

    /** The configuration of the node, made of the one that all have in common. */
    static String of(String common, NodePlan plan) {
        String xml = common;
        if (plan.machine() != null) {
            // Infinispan then has copies of an entry on nodes of different machines.
            xml = replaced(xml, "node-name=\"${entresol.node.name}\"",
                    "node-name=\"${entresol.node.name}\" machine=\"${entresol.machine}\"");
        }
        if (plan.users() != null) {
            // REST clients give name and password as they are; unasked, a server takes digests.
            xml = replaced(xml, "<global-state>", "<security><authorization"
                    + " audit-logger=\"org.infinispan.security.audit.NullAuditLogger\">"
                    + "<identity-role-mapper/></authorization></security><global-state>");
            xml = replaced(xml, "<hotrod-connector/>", "<hotrod-connector><authentication><sasl"
                    + " mechanisms=\"SCRAM-SHA-512 SCRAM-SHA-384 SCRAM-SHA-256"
                    + (clients(plan) == null ? "" : " PLAIN") + "\" server-name=\"infinispan\"/>"
                    + "</authentication></hotrod-connector>");
            xml = replaced(xml, "<rest-connector/>", "<rest-connector><authentication"
                    + " mechanisms=\"BASIC\"/></rest-connector>");
        }
        return clients(plan) == null ? xml : encrypted(xml, plan);
    }

    /** The port that Hot Rod and REST share has the encryption of its realm. */
    private static String encrypted(String common, NodePlan plan) {
        String xml = common;
        String encryption = "<encryption security-realm=\"${entresol.realm}\""
                + " require-ssl-client-auth=\"" + (clients(plan).authorities() != null) + "\"/>";
        for (String other : new String[] {"resp-connector", "memcached-connector"}) {
            xml = xml.replaceAll("(<" + other + "[^>]*)/>", "$1>"
                    + encryption.replace("$", "\\$") + "</" + other + ">");
        }
        String identity = "<server-identities><ssl>"
                + STORE.formatted("keystore", NodeTls.CLIENTS.identity())
                + (clients(plan).authorities() == null ? ""
                        : STORE.formatted("truststore", NodeTls.CLIENTS.trusted()))
                + "</ssl></server-identities>";
        if (plan.users() != null) {
            return replaced(xml, "<properties-realm>", identity + "<properties-realm>");
        }
        // RESP and memcached ask a realm for users unless it has nothing at all.
        xml = replaced(xml, "            security-realm=\"${entresol.realm}\"",
                "            security-realm=\"nobody\"");
        return replaced(xml, "<security-realm name=\"open\"/>", "<security-realm name=\"nobody\"/>"
                + "<security-realm name=\"open\">" + identity + "</security-realm>");
    }

    private static TlsFiles clients(NodePlan plan) {
        return plan.tls().get(NodeTls.CLIENTS);
    }

    private static String replaced(String xml, String part, String by) {
        if (!xml.contains(part)) {
            throw new IllegalStateException("the configuration has no " + part);
        }
        return xml.replace(part, by);
    }
}
