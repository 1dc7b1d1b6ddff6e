/**
 * `npm run prove -- timing [FILE…]`: measures the lateness that the tests do not judge. Real processes are killed, and the starts after the
 * kill are compared with the starts before it, in the same run: after a kill -9, after a leader's death while no node can be elected, at a
 * sign-in under a flood, beside 10,000 connections, beside a worker without a free slot, in the demo; and how long stops take while things
 * hang. It prints each figure with its control and its bound, and fails if one is above its bound. It needs a machine at rest, and is no
 * part of `npm test`. FILE: one of scheduler/test/timing.
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
