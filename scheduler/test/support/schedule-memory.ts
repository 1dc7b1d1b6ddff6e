/**
 * This program measures memory and time of N distinct cron schedules; N is its argument. It runs as a child process with
 * --expose-gc, and prints one JSON line.
 */
import type { Schedule } from "../../src/schedule/schedule.ts";
import { compileSchedule, cron } from "../../src/schedule/schedule.ts";

const collect = globalThis.gc;
if (collect === undefined) throw new Error("run with --expose-gc");
const zones = Intl.supportedValuesOf("timeZone");
const now = Date.UTC(2026, 5, 1);
const many = Number(process.argv[2]);

collect();
const before = process.memoryUsage();
const held: Schedule[] = [];
const started = performance.now();
for (let i = 0; i < many; i++) {
  const expression = `${i % 60} ${Math.floor(i / 60) % 24} * * ${Math.floor(i / 1440) % 7}`;
  held.push(compileSchedule(cron(expression, { zone: zones[i % zones.length] })));
}
const compiled = performance.now();
// The first round is measured separately, because it computes the transitions of the zones.
for (const schedule of held) schedule.next(now);
const warmed = performance.now();
const rounds = 10;
let sum = 0;
for (let round = 0; round < rounds; round++) {
  for (const schedule of held) sum += schedule.next(now + round * 86_400_000) ?? 0;
}
const ended = performance.now();
collect();
const after = process.memoryUsage();
const mb = (bytes: number) => Math.round(bytes / 1e5) / 10;
process.stdout.write(
  `${JSON.stringify({
    schedules: new Set(held).size,
    heapMb: mb(after.heapUsed - before.heapUsed),
    rssMb: mb(after.rss - before.rss),
    compileUs: Math.round(((compiled - started) * 10_000) / many) / 10,
    firstNextUs: Math.round(((warmed - compiled) * 10_000) / many) / 10,
    nextUs: Math.round(((ended - warmed) * 100_000) / many / rounds) / 100,
    sum,
  })}\n`,
);
