/**
 * `npm run prove -- timing [FILE…]`: measures how late runs start, which the tests do not check. Real processes are killed, and the starts
 * after a kill are compared with those before it in the same run. It measures: after a kill -9; after the death of a leader while no node
 * can be elected; a sign-in during a flood; beside 10,000 connections; beside a worker without a free slot; the demo; and how long stops
 * take while steps hang. It prints each figure with its control and its bound, and fails if a figure exceeds its bound. It needs an idle
 * machine and is not part of `npm test`. FILE: one of the files in scheduler/test/timing.
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
