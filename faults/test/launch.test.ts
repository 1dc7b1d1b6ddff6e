import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";

interface Script {
  launch(program: string, args: string[], options: object): Promise<ChildProcess>;
}

/** A process that prints a lot before it is ready, as PostgreSQL does when it recovers while nine processes try to connect. */
const talkative = `
  process.stdout.write("not yet\\n".repeat(20_000), () => console.log("ready to accept connections"));
  setInterval(() => undefined, 1_000);
`;

it("recognises a server as ready even if the server printed a lot before its ready line", async () => {
  const { launch } = (await import(new URL("../../scripts/servers/server.mjs", import.meta.url).href)) as Script;
  const folder = mkdtempSync(join(tmpdir(), "carillon-launch-"));
  const options = { user: {}, cwd: folder, log: join(folder, "log"), ready: /ready to accept/, patienceMs: 60_000 };
  const child = await launch(process.execPath, ["-e", talkative], options);
  expect(child.exitCode).toBe(null);
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
  rmSync(folder, { recursive: true });
});
