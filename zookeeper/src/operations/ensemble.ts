/** One server of the ensemble's configuration. */
export interface EnsembleServer {
  readonly id: string;
  /** The server's line in the form that `reconfig` takes: `server.1=host:2888:3888:participant;0.0.0.0:2181`. */
  readonly text: string;
  /** `host:port` for clients; undefined if the configuration does not contain the port, which a static configuration may omit. */
  readonly client: string | undefined;
}

export interface EnsembleConfig {
  readonly version: bigint;
  readonly servers: readonly EnsembleServer[];
}

/** Parses the data that `config` and `reconfig` return. */
export function parseConfig(data: Buffer | string): EnsembleConfig {
  const lines = data.toString().split("\n");
  const version = lines.map((line) => /^version=([0-9a-f]+)$/i.exec(line)?.[1]).find((found) => found !== undefined);
  return { version: BigInt(`0x${version ?? "0"}`), servers: lines.flatMap(serverOf) };
}

function serverOf(text: string): EnsembleServer[] {
  const [, id, server = "", client] = /^server\.(\d+)=([^;]+)(?:;(.+))?$/.exec(text) ?? [];
  if (id === undefined) return [];
  return [{ id, text, client: client === undefined ? undefined : clientAddress(server, client) }];
}

/** Returns `host:port` for clients. If the server listens on all its addresses, the host is the one that the other servers use. */
function clientAddress(server: string, client: string): string {
  const [, bound, port] = /^(?:(.*):)?(\d+)$/.exec(client) ?? [];
  const isAny = bound === undefined || ["", "0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]", "::"].includes(bound);
  const host = isAny ? /^(\[[^\]]*\]|[^:]+)/.exec(server)?.[1] : bound;
  return `${host}:${port}`;
}
