package io.entresol.grid.resp;

import org.infinispan.server.resp.commands.string.DEL;

/** A removal, as DEL is: values on flash are never freed while somebody waits. */
final class UNLINK extends DEL {
}
