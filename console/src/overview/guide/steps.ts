/** The steps of the guide, in their order. */
export const steps = ["worker", "task", "run", "see"] as const;
export type Step = (typeof steps)[number];
export type Place = "done" | "present" | "later";

/** The parts that a new cluster has so far. */
export interface Progress {
  /** The number of live workers. */
  workers: number;
  /** The name of a task; undefined: there is none. */
  task: string | undefined;
  /** The number of a run; undefined: there is none. */
  run: number | undefined;
  /** True if a run that had started has ended. */
  hasRun: boolean;
}

/** Returns which steps are done; the first one that is not is the present one. A later step may be done before an earlier one. */
export function placesOf({ workers, task, run, hasRun }: Progress): Record<Step, Place> {
  const done = { worker: workers > 0, task: task !== undefined, run: run !== undefined, see: hasRun };
  const present = steps.find((step) => !done[step]);
  const placeOf = (step: Step): Place => (done[step] ? "done" : step === present ? "present" : "later");
  return { worker: placeOf("worker"), task: placeOf("task"), run: placeOf("run"), see: placeOf("see") };
}
