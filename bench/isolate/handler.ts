/** The isolated handler: computes without a pause, or does nothing. */
import { isMainThread } from "node:worker_threads";
import type { Run } from "carillon";
import type { Computing } from "./order.ts";

export function compute(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

/** @returns for a handler that computes, where it ran */
export default function handle(_run: Run, payload: Computing | null) {
  if (payload === null) return undefined;
  const began = performance.now();
  compute(payload.ms);
  return { pid: process.pid, isMainThread, tookMs: performance.now() - began };
}
