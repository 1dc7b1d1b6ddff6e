/**
 * `npm run prove -- HARNESS [ARGUMENT…]`: runs a harness that looks for faults which tests do not find. Each harness prepares the clone,
 * starts the servers that it needs, and describes its options with `--help`.
 */
import { fail, Trouble } from "./ready.mjs";
import { usageOf } from "./usage.mjs";

const harnesses = {
  simulate: "a whole cluster in one process, on virtual time, under faults that a seed chooses",
  policies: "random tasks, policies and acts on a test tower's time, held to what the docs say",
  workers: "random workers by HTTP against two servers, held to the tables of the worker protocol",
  faults: "real processes and servers, killed, stopped and cut off; with --peers other schedulers beside",
  fuzz: "good inputs spoilt: files, texts, options, requests, answers, bytes",
  soak: "a cluster of real processes under a steady load and a fault a minute, for hours",
  rolling: "processes of an earlier commit and of this one on one store",
  steady: "the gate, again and again, at rest or with all cores busy: which tests do not say the same every time",
  timing: "how late is what starts after a kill, without a leader, under a flood: figures, each beside its control",
  runtimes: "the packed packages under tsx, Bun, Jest and as esbuild bundles them",
  image: "the steps of deploy/Dockerfile without a container runtime, and a run of what they make",
};

async function main() {
  const [name = "--help", ...rest] = process.argv.slice(2);
  if (name === "--help" || name === "-h") {
    const lines = Object.entries(harnesses).map(([harness, what]) => `  ${harness.padEnd(10)}${what}`);
    process.stdout.write(`${usageOf("scripts/prove.mjs")}\n\n${lines.join("\n")}\n`);
    return;
  }
  if (!Object.hasOwn(harnesses, name))
    throw new Trouble(`there is no harness ${JSON.stringify(name)}: ${Object.keys(harnesses).join(", ")}.`);
  const program = new URL(`./prove/${name}.mjs`, import.meta.url);
  process.argv.splice(1, process.argv.length, program.pathname, ...rest);
  await import(program.href);
}

await main().catch(fail);
