import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { ownPath, sharedServer } from "../support/servers.ts";

const program = fileURLToPath(new URL("../../../examples/dist/zookeeper/nightly.js", import.meta.url));

it("nightly work on two machines: killed in the second night, it is finished by the other machine", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [program, sharedServer(), ownPath("nightly")], {
    timeout: 60_000,
  });
  const lines = stdout.trim().split("\n");
  const nights = lines.flatMap((line) => {
    const found = /^night (\d): finished by (\w+), fence (\d+), 0 of 5 batches missing$/.exec(line);
    return found ? [{ night: Number(found[1]), by: found[2] ?? "", fence: BigInt(found[3] ?? 0) }] : [];
  });
  expect(nights.map(({ night }) => night)).toEqual([1, 2, 3]);
  const [first, second, third] = nights;
  expect([second?.by, third?.by]).toEqual([third?.by, first?.by === "anna" ? "bert" : "anna"]);
  expect(second?.fence).toBeGreaterThan(first?.fence ?? 0n);
  expect(third?.fence).toBe(second?.fence);
  expect(lines).toContain(`kill -9 ${first?.by}, in the middle of night 2`);
  expect(lines).toContain(`${second?.by}: took over from ${first?.by}`);
});
