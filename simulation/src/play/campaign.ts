import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Violation } from "../history.ts";
import type { Order, Told } from "./player.ts";

export interface Figures {
  readonly seeds: number;
  readonly broken: { seed: number; violation: Violation }[];
  readonly replayed: number;
  readonly differing: number[];
  readonly statements: number;
  readonly seconds: number;
  /** For each path (see sometimes.ts): how many seeds have taken it. */
  readonly paths: Record<string, number>;
}

export interface CampaignOptions {
  readonly url: string;
  readonly seeds: readonly number[];
  readonly lengthMs: number;
  /** If true, no seed is small. */
  readonly full?: boolean;
  readonly processes: number;
  /**
   * Path of the program that simulates the seeds: by default this build's program, or one from a copy of the code with a planted
   * bug.
   */
  readonly program?: string;
  /** If true, the campaign ends at the first violation. */
  readonly untilBroken?: boolean;
  /** If true, the death of a process that plays seeds counts as a violation. */
  readonly mayFail?: boolean;
  readonly onProgress?: (done: number) => void;
  /** Called as soon as a violation is found. */
  readonly onBroken?: (seed: number, violation: Violation) => void;
}

const progressEvery = 500;
/** Gives V8 a larger young generation, because a seed creates many short-lived objects. */
const execArgv = ["--max-semi-space-size=32"];
/**
 * The maximum processor time of one seed in ms, where /proc shows it. It detects endless loops in simulated code, and does not take a busy
 * machine for one.
 */
const hungCpuMs = 60_000;
/** The maximum real time of one seed in ms, for a process that waits for ever or a system without /proc. */
const hungMs = 900_000;
const hungLookMs = 5_000;
/** Unit of the times in /proc, in ms: a hundredth of a second on every Linux. */
const tickMs = 10;
export const player = fileURLToPath(new URL("player.js", import.meta.url));

/** Returns the processor time that the process has used, in ms; 0 if it cannot be read. */
function cpuMs(pid: number | undefined): number {
  try {
    const [, after = ""] = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ");
    const fields = after.split(" ");
    return (Number(fields[11]) + Number(fields[12])) * tickMs;
  } catch {
    return 0;
  }
}

/** Plays many seeds in several processes; each process takes the next seed when it has finished one. */
export async function playSeeds(options: CampaignOptions): Promise<Figures> {
  const { seeds, processes, program = player, url, lengthMs, full = false } = options;
  const { untilBroken = false, onProgress, onBroken } = options;
  const began = process.hrtime.bigint();
  const broken: Figures["broken"] = [];
  const differing: number[] = [];
  const paths: Record<string, number> = {};
  let [next, done, replayed, statements] = [0, 0, 0, 0];
  const take = () => (untilBroken && broken.length > 0 ? null : (seeds[next++] ?? null));
  const hear = (told: Told) => {
    done++;
    statements += told.statements;
    for (const path of told.paths) paths[path] = (paths[path] ?? 0) + 1;
    if (told.violation) {
      broken.push({ seed: told.seed, violation: told.violation });
      onBroken?.(told.seed, told.violation);
    }
    if (told.replayed !== undefined) replayed++;
    if (told.replayed === false) differing.push(told.seed);
    if (done % progressEvery === 0) onProgress?.(done);
  };
  const work = (i: number) =>
    new Promise<void>((resolve, reject) => {
      const child = fork(program, [], { stdio: ["ignore", 2, 2, "ipc"], execArgv });
      let hung: NodeJS.Timeout | undefined;
      const order = (seed: number | null) => {
        clearInterval(hung);
        const [fromCpuMs, fromMs] = [cpuMs(child.pid), performance.now()];
        const isHung = () => cpuMs(child.pid) - fromCpuMs > hungCpuMs || performance.now() - fromMs > hungMs;
        if (seed !== null) hung = setInterval(() => isHung() && child.kill("SIGKILL"), hungLookMs);
        child.send({ url, player: i, lengthMs, full, seed } satisfies Order);
      };
      let lastSeed: number | null = null;
      child.on("message", (told: Told) => {
        hear(told);
        lastSeed = take();
        order(lastSeed);
      });
      child.on("exit", (code) => {
        clearInterval(hung);
        if (code !== 0 && options.mayFail && lastSeed !== null)
          broken.push({
            seed: lastSeed,
            violation: {
              invariant: "nothing unexpected",
              what: `the process ended with ${code ?? `a kill: no end within ${hungCpuMs} ms of its own time, or ${hungMs} ms`}`,
            },
          });
        else if (code !== 0) return reject(new Error(`the process that played seed ${lastSeed} ended with ${code}`));
        resolve();
      });
      lastSeed = take();
      order(lastSeed);
    });
  await Promise.all(Array.from({ length: Math.max(1, Math.min(processes, seeds.length)) }, (_, i) => work(i)));
  broken.sort((a, b) => a.seed - b.seed);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  return { seeds: done, broken, replayed, differing, statements, seconds, paths };
}
