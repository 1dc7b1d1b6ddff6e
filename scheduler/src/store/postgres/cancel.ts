import pg from "pg";

/** Fields of a pg connection that the type declarations of pg leave out. */
interface Known {
  host: string;
  port: number;
  ssl: unknown;
  sslNegotiation: string;
  processID: number | null;
  secretKey: number | null;
  readyForQuery: boolean;
}
interface Line {
  stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
  on(event: string, listener: () => void): void;
}

const knownOf = (client: pg.ClientBase) => client as unknown as Known;

export const isAtWork = (client: pg.ClientBase): boolean => !knownOf(client).readyForQuery;

/**
 * Requests the server to cancel the statement that this client waits for. The request uses a separate connection, as PostgreSQL's protocol
 * requires; a pooler forwards it. The statement then fails with SQL state 57014, unless it has already ended.
 * @returns `taken` resolves once the request was accepted or could not be delivered; `drop` closes the connection of the request
 */
export function cancelStatement(client: pg.ClientBase): { taken: Promise<void>; drop: () => void } {
  const { host, port, ssl, sslNegotiation, processID, secretKey } = knownOf(client);
  if (processID === null || secretKey === null) return { taken: Promise.resolve(), drop: () => undefined };
  const Connection = (pg as unknown as { Connection: new (config: object) => Line }).Connection;
  const line = new Connection({ ssl, sslNegotiation });
  const taken = new Promise<void>((resolve) => {
    const send = () => line.cancel(processID, secretKey);
    line.on("connect", () => {
      if (!ssl) send();
      else if (sslNegotiation !== "direct") line.requestSsl();
    });
    line.on("sslconnect", send);
    // If the request cannot be delivered, the caller does the same as otherwise: it closes the client's connection.
    line.on("error", resolve);
    line.on("end", resolve);
  });
  if (host.startsWith("/")) line.connect(`${host}/.s.PGSQL.${port}`);
  else line.connect(port, host);
  return { taken, drop: () => line.stream.destroy() };
}
