/** Evaluates the records that the processes of both versions write as lines to a shared file. Has no side effects. */

/** "old": the earlier version, N − 1. "new": this version. */
export type Version = "old" | "new";

export type Seen =
  | {
      kind: "began";
      atMs: number;
      by: Version;
      node: string;
      task: string;
      run: number;
      attempt: number;
      slotMs: number | null;
    }
  | { kind: "ended"; atMs: number; by: Version; task: string; run: number; inputs?: number }
  /** The process enqueued the run, and the store has acknowledged it. */
  | { kind: "enqueued"; atMs: number; by: Version; run: number }
  | { kind: "said"; atMs: number; by: Version; node: string; level: "warn" | "error"; message: string; fields: object }
  | { kind: "exit"; atMs: number; by: Version; node: string; how: string };

/** A run that has ended, as the store's history records it. */
export interface Stored {
  run: number;
  task: string;
  slotMs: number | null;
  succeeded: boolean;
  attempt: number;
}

export interface Expected {
  /** The interval in ms between the slots of each task that has slots. */
  every: Record<string, number>;
  /** From this time on (epoch ms) all first processes of N − 1 were running, so the lateness of later slots counts. */
  fromMs: number;
  /** Slots up to this time (epoch ms) must have run. */
  untilMs: number;
  /** The tasks whose runs must never overlap. */
  serial: string[];
  /** For each task that joins child runs: the number of children whose results it must receive. */
  children: Record<string, number>;
  /** The number of slots that the store has recorded as missed or skipped. */
  missed: number;
}

export interface Account {
  figures: {
    slots_due: number;
    fired: number;
    lost: number;
    doubled: number;
    missed: number;
    retried: number;
    enqueued: number;
    enqueued_lost: number;
    failed: number;
    overlapped: number;
    joined: number;
    ran_old: number;
    ran_new: number;
    /** The number of runs that the old version enqueued and the new version executed; `new_to_old` is the reverse. */
    old_to_new: number;
    new_to_old: number;
    late_p99_ms: number;
    late_max_ms: number;
    errors: number;
  };
  wrong: string[];
}

const shown = 10;

/**
 * Checks that every slot and every acknowledged run ran exactly once and succeeded, that serial tasks never overlapped, that
 * joins received all children, that no process logged an error, and that each process ended by SIGTERM or with exit code 0.
 * Counts retries.
 */
export function accountOf(seen: Seen[], stored: Stored[], expected: Expected): Account {
  const wrong: string[] = [];
  const began = seen.filter((one) => one.kind === "began");
  const ended = seen.filter((one) => one.kind === "ended");
  const enqueued = seen.filter((one) => one.kind === "enqueued");
  const starts = new Map<number, (typeof began)[number][]>();
  for (const one of began) starts.set(one.run, [...(starts.get(one.run) ?? []), one]);
  const byRun = new Map(stored.map((one) => [one.run, one]));

  let [due, fired, lost, doubled, failed] = [0, 0, 0, 0, 0];
  for (const [task, everyMs] of Object.entries(expected.every)) {
    const slots = stored.flatMap((one) => (one.task === task && one.slotMs !== null ? [one.slotMs] : []));
    const there = slots.filter((slotMs) => slotMs <= expected.untilMs).sort((a, b) => a - b);
    const [first] = there;
    if (first === undefined) {
      wrong.push(`${task} never fired`);
      continue;
    }
    const wanted = Math.floor((expected.untilMs - first) / everyMs) + 1;
    const distinct = new Set(there);
    due += wanted;
    fired += there.length;
    for (let slotMs = first; slotMs <= expected.untilMs; slotMs += everyMs) {
      if (distinct.has(slotMs)) continue;
      lost++;
      wrong.push(`${task} has no run of ${new Date(slotMs).toISOString()}`);
    }
    if (there.length > distinct.size) wrong.push(`${task}: ${there.length - distinct.size} slots have two runs`);
    doubled += there.length - distinct.size;
  }
  for (const one of stored) {
    if (!one.succeeded) wrong.push(`run ${one.run} of ${one.task} did not succeed`);
    if (!one.succeeded) failed++;
    const times = starts.get(one.run)?.length ?? 0;
    if (times === 0) wrong.push(`run ${one.run} of ${one.task} ended and never began`);
    if (times > 1) wrong.push(`run ${one.run} of ${one.task} began ${times} times`);
    if (times > 1) doubled++;
  }
  for (const [run, [one]] of starts)
    if (!byRun.has(run)) wrong.push(`run ${run} of ${one?.task} began and has not ended`);
  const retried = began.filter(({ attempt }) => attempt > 1).length;
  const unended = enqueued.filter(({ run }) => !byRun.has(run));
  for (const { run, by } of unended) wrong.push(`run ${run}, acknowledged to ${by}, never ended`);

  const overlapped = expected.serial.flatMap((task) => overlaps(seen, task));
  for (const [a, b] of overlapped) wrong.push(`runs ${a} and ${b} of a serial task were under way at once`);
  const joins = ended.filter(({ inputs }) => inputs !== undefined);
  for (const { run, task, inputs } of joins)
    if (inputs !== expected.children[task]) wrong.push(`run ${run} of ${task} joined ${inputs} children`);

  const errors = seen.filter((one) => one.kind === "said" && one.level === "error");
  for (const one of errors)
    if (one.kind === "said") wrong.push(`${one.node} (${one.by}): ${one.message} ${JSON.stringify(one.fields)}`);
  for (const one of seen)
    if (one.kind === "exit" && one.how !== "SIGTERM" && one.how !== "0")
      wrong.push(`${one.node} (${one.by}) ended by ${one.how}`);

  const runner = (run: number) => starts.get(run)?.[0]?.by;
  const crossed = (from: Version, to: Version) =>
    enqueued.filter(({ by, run }) => by === from && runner(run) === to).length;
  // Only tasks with slots count: child runs carry the slot of the run that spawned them, and start later.
  const late = began
    .flatMap(({ atMs, slotMs, attempt, task }) =>
      slotMs === null || slotMs < expected.fromMs || attempt > 1 || !(task in expected.every) ? [] : [atMs - slotMs],
    )
    .sort((a, b) => a - b);
  return {
    figures: {
      slots_due: due,
      fired,
      lost,
      doubled,
      missed: expected.missed,
      retried,
      enqueued: enqueued.length,
      enqueued_lost: unended.length,
      failed,
      overlapped: overlapped.length,
      joined: joins.length,
      ran_old: began.filter(({ by }) => by === "old").length,
      ran_new: began.filter(({ by }) => by === "new").length,
      old_to_new: crossed("old", "new"),
      new_to_old: crossed("new", "old"),
      late_p99_ms: late[Math.max(0, Math.ceil(late.length * 0.99) - 1)] ?? Number.NaN,
      late_max_ms: late.at(-1) ?? Number.NaN,
      errors: errors.length,
    },
    wrong: wrong.length > shown ? [...wrong.slice(0, shown), `… and ${wrong.length - shown} more`] : wrong,
  };
}

/** Describes, for debugging, the latest of the starts whose slot is at or after `fromMs`, without those of child runs and joins. */
export function latestOf(seen: Seen[], fromMs: number): string[] {
  return seen
    .flatMap((one) =>
      one.kind === "began" && one.slotMs !== null && one.slotMs >= fromMs
        ? [{ ...one, lateMs: one.atMs - one.slotMs }]
        : [],
    )
    .filter(({ task }) => task !== "leaf" && task !== "joined")
    .sort((one, other) => other.lateMs - one.lateMs)
    .slice(0, shown)
    .map(
      ({ task, node, lateMs, slotMs }) =>
        `${task} by ${lateMs} ms at ${node}, slot ${(((slotMs as number) - fromMs) / 1_000).toFixed(1)} s after all of N − 1 were there`,
    );
}

/** Returns the pairs of successive starts of this task of which the second came before the run of the first had ended. */
function overlaps(seen: Seen[], task: string): [number, number][] {
  const found: [number, number][] = [];
  let under: number | undefined;
  for (const one of seen) {
    if (one.kind === "began" && one.task === task) {
      if (under !== undefined) found.push([under, one.run]);
      under = one.run;
    }
    if (one.kind === "ended" && one.task === task && under === one.run) under = undefined;
  }
  return found;
}
