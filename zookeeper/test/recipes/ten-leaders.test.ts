import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Ensemble } from "../../src/testing/ensemble.ts";

const program = fileURLToPath(new URL("../../../examples/dist/zookeeper/ten-leaders.js", import.meta.url));

let ensemble: Ensemble;
beforeAll(async () => {
  ensemble = await Ensemble.start({ servers: 3 });
});
afterAll(() => ensemble?.stop());

it("ten clients on three servers: each leads exactly once, and then repeatedly", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ensemble.connectString()], {
    timeout: 100_000,
  });
  const lines = stdout.trim().split("\n");
  const led = lines.filter((line) => / leads, /.test(line)).map((line) => line.split(" ")[1]);
  expect(led.length).toBe(10);
  expect(new Set(led).size).toBe(10);
  expect(lines).toContain("latch: 10 of 10 led, 10 times in all");
  expect(lines.at(-1)).toBe("selector: 10 of 10 led, each 3 times or more");
});
