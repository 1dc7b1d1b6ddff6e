import { createServer } from "node:net";

/** Returns a loopback port that is free now, for a server whose address must be known before it listens. Another process may take it. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
