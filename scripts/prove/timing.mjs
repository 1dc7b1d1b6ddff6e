/**
 * `npm run prove -- timing [FILE…]`: measures times, which the tests do not check. It measures how late runs start after a SIGKILL,
 * after the death of a leader while no node can be elected, beside 10,000 connections, beside a worker without a free slot, and in the
 * demo; how long a sign-in takes during a flood; how long stops take while steps hang; and how soon a missed slot is told. Starts after
 * a kill are compared with starts before it. It prints each figure with its control and its bound, and fails if a figure exceeds its
 * bound. It needs an idle machine and is not part of `npm test`. FILE: one of the files in scheduler/test/timing.
 */
import { compile } from "../build.mjs";
import { fail, installDependencies, requireNode, Trouble } from "../ready.mjs";
import { startServers, testServers } from "../servers.mjs";
import { vitest } from "../test/vitest.mjs";
import { showsUsage } from "../usage.mjs";

const limitMs = 30 * 60_000;

async function main() {
  if (showsUsage("scripts/prove/timing.mjs")) return;
  requireNode();
  installDependencies();
  if (!compile()) throw new Trouble("the code does not compile, see above.");
  const servers = await startServers(testServers);
  try {
    const { passed, failures } = await vitest({
      node: process.execPath,
      label: "timing",
      args: ["--project=timing", ...process.argv.slice(2)],
      env: servers.env,
      whole: false,
      leftMs: () => limitMs,
    });
    console.log(`${passed} measured, ${failures.length} above their bound or failed`);
    if (failures.length > 0) process.exitCode = 1;
  } finally {
    await servers.stop();
  }
}

await main().catch(fail);
