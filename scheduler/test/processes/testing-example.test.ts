import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { postgres } from "../support/servers.ts";

const program = fileURLToPath(new URL("../../../examples/dist/testing/tasks.test.js", import.meta.url));

it("the example of carillon/testing passes under node:test", async () => {
  const child = spawn(process.execPath, ["--test", program], {
    // The environment must not contain Vitest's own variables.
    env: { PATH: process.env.PATH, DATABASE_URL: postgres().url },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  const code = await new Promise((resolve) => child.once("close", resolve));
  expect(said).toMatch(/pass 4/);
  expect(code, said).toBe(0);
});
