/** The isolated handler: computes for the payload's time without a pause, or does nothing if the payload is null. */
import { isMainThread } from "node:worker_threads";
import type { Run } from "carillon";
import type { Computing } from "./order.ts";

export function compute(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** @returns undefined for a null payload, else whether it ran in the main thread, and the duration in ms */
export default function handle(_run: Run, payload: Computing | null) {
  if (payload === null) return undefined;
  const began = performance.now();
  compute(payload.ms);
  return { pid: process.pid, isMainThread, tookMs: performance.now() - began };
}
