import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const program = fileURLToPath(new URL("../../scripts/prove/faults.mjs", import.meta.url));

/** Runs the harness and returns its closing line. */
async function faults(...args: string[]): Promise<Record<string, unknown>> {
  const child = spawn(process.execPath, [program, "--json", ...args], { stdio: ["ignore", "pipe", "inherit"] });
  let told = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    told += text;
  });
  const [code] = await once(child, "close");
  const line = told.trim().split("\n").at(-1) ?? "";
  if (!line.startsWith("{")) throw new Error(`the harness ended with ${code}, and said: ${told}`);
  return JSON.parse(line) as Record<string, unknown>;
}

it("finds no violation after several faults at once", async () => {
  const strike = "leader-killed+worker-paused+store-cut+redis-killed";
  // 180 s, because this test does not measure the recovery time; `npm run prove -- faults` does so on an idle machine.
  const options = "--coordination redis --seed 7 --within 180".split(" ");
  const { violations, not_recovered, broken } = await faults(strike, ...options);
  expect({ violations, not_recovered, broken }).toEqual({ violations: 0, not_recovered: 0 });
});

it("detects the lock whose holder was stopped and whose fence is never checked, and no other lock", async () => {
  const { unfenced, fenced } = (await faults("--locks")) as Record<"unfenced" | "fenced", Record<string, unknown>>;
  expect(unfenced?.violation).toMatchObject({ invariant: expect.stringContaining("8: ") });
  expect(fenced?.violation).toBeUndefined();
  expect(fenced?.refused).toBeGreaterThan(0);
});
