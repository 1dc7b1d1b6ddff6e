import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { StallMeter } from "../support/stall-meter.ts";
import { hold } from "../support/timing.ts";

const program = fileURLToPath(new URL("../../../examples/dist/demo/main.js", import.meta.url));
/**
 * The time in ms in which the claims of a dead worker are taken back with default settings: about the sum of the session timeout, a
 * heartbeat interval and the grace.
 */
const takenBackMs = 10_000;

it("the demo has little delay though one of its two processes is killed", async () => {
  const stalls = new StallMeter();
  const child = spawn(process.execPath, [program, "--seconds", "8", "--json"], { stdio: ["ignore", "pipe", "ignore"] });
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    out += text;
  });
  const [code] = await once(child, "close");
  const stalledMs = stalls.stop();
  expect(code, out).toBe(0);
  const figures = JSON.parse(out.trim().split("\n").at(-1) ?? "null") as Record<string, number>;
  // Between its enqueue and its start, a run passes through two processes and the store, and the machine may delay each of them.
  hold("greatest lateness of the demo", {
    ms: figures.max_ms as number,
    controlMs: figures.p50_ms as number,
    mostMs: 250 + 3 * stalledMs,
  });
  hold("last re-run of the demo after its kill", {
    ms: figures.rerun_last_ms_after_kill as number,
    controlMs: takenBackMs,
    mostMs: takenBackMs + 500,
  });
});
