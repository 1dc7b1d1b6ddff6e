import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort, throwAwayFolder } from "@carillon/zookeeper/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisServer } from "../support/redis-server.ts";
import { postgres } from "../support/servers.ts";
import { openStage, type Stage } from "../support/store-stage.ts";
import { makeCertificates } from "../support/tls-store.ts";

const program = fileURLToPath(new URL("../support/programs/lock-user.mjs", import.meta.url));

describe("a Redis that accepts only TLS, with its own certificate authority", () => {
  const folder = throwAwayFolder("redis-tls");
  const file = (name: string) => join(folder, name);
  let server: RedisServer;
  let port: number;
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage(postgres());
    makeCertificates(folder);
    port = await freePort();
    const files = { cert: "localhost.pem", key: "localhost.key", "ca-cert": "authority.pem" };
    const named = Object.entries(files).flatMap(([kind, name]) => [`--tls-${kind}-file`, file(name)]);
    server = await RedisServer.start(["--tls-port", `${port}`, "--tls-auth-clients", "no", ...named]);
  });
  afterAll(async () => {
    await server?.close();
    await stage?.close();
  });

  /**
   * Starts a process that tries to take a lock, and kills it once it has the lock.
   * @param authority the certificate authority whose certificates the process accepts
   * @returns everything that the process printed, on both of its output streams
   */
  async function locking(host: string, scheme: string, authority?: string): Promise<string> {
    const { server: store, schema } = stage;
    const options = { store: store.url, schema, coordination: `${scheme}://${host}:${port}`, failFast: true };
    const child = spawn(process.execPath, [program], {
      env: {
        ...process.env,
        ...(authority && { NODE_EXTRA_CA_CERTS: file(authority) }),
        CARILLON_TEST_LOCK: JSON.stringify({ options, name: "one" }),
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text) => {
        said += text;
        if (/holds/.test(text)) child.kill("SIGKILL");
      });
    await once(child, "close");
    return said;
  }

  it("gives a lock to a client that trusts the authority", async () => {
    expect(await locking("localhost", "rediss", "authority.pem")).toContain("holds");
  });

  it.each([
    ["without TLS", "localhost", "redis", "authority.pem"],
    ["with another authority", "localhost", "rediss", "stranger.pem"],
    ["with no authority", "localhost", "rediss", undefined],
    ["by another name", "127.0.0.1", "rediss", "authority.pem"],
  ])("is refused without retries: %s", async (_, host, scheme, authority) => {
    const said = await locking(host, scheme, authority);
    expect(said).toContain("COORDINATION_UNREACHABLE");
    if (scheme === "rediss") expect(said).toMatch(/certificate|altnames/);
  });
});
