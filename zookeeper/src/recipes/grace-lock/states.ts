/**
 * The state machine of the grace lock for one contender: every state and every event, including events that change nothing. A test
 * compares docs/coordination/grace-lock.md with this table.
 *
 * The lock has four states. `OWN` and `WAITING` are each split by whether a use is running in this process, because that decides what the
 * owner does when its node vanishes. In `RELEASED` and `CREATED` no use can run.
 */

/**
 * CREATED: no holder is known. OWN: this contender holds the lock. RELEASED: another contender holds it. WAITING: the last holder
 * vanished without a release, and the lock has not been taken since.
 */
export type GraceLockState = "CREATED" | "OWN" | "RELEASED" | "WAITING";

export const situations = [
  "CREATED",
  "OWN idle",
  "OWN running",
  "RELEASED",
  "WAITING idle",
  "WAITING running",
] as const;
export type Situation = (typeof situations)[number];

/**
 * Results of reading the lock's state (free: never held, or released; held: by another contender; vacant: its holder vanished; ours: this
 * contender holds it; overtaken: another contender has held it since), results of taking the lock, and local events.
 */
export const graceLockEvents = [
  "found free",
  "found held",
  "found vacant",
  "found ours",
  "overtaken",
  "took",
  "began",
  "finished",
  "released",
  "session ended",
  "grace over",
] as const;
export type GraceLockEvent = (typeof graceLockEvents)[number];

/**
 * reclaim: take the lock back at once. lose: stop the running use. refuse: the event is impossible in this state, so the caller has a
 * bug.
 */
export type GraceLockAct = "reclaim" | "lose" | "refuse";

export interface Step {
  readonly to: Situation;
  readonly act?: GraceLockAct;
}

type Row = Readonly<Record<Situation, Step>>;

const stay: Row = {
  CREATED: { to: "CREATED" },
  "OWN idle": { to: "OWN idle" },
  "OWN running": { to: "OWN running" },
  RELEASED: { to: "RELEASED" },
  "WAITING idle": { to: "WAITING idle" },
  "WAITING running": { to: "WAITING running" },
};

const no = (situation: Situation): Step => ({ to: situation, act: "refuse" });
const reclaim: Step = { to: "WAITING running", act: "reclaim" };

const table: Readonly<Record<GraceLockEvent, Row>> = {
  // If the owner finds its lock free, a person has released it. If a use is running, the owner still takes the lock back.
  "found free": {
    ...stay,
    "OWN idle": { to: "CREATED" },
    "OWN running": reclaim,
    RELEASED: { to: "CREATED" },
    "WAITING idle": { to: "CREATED" },
    "WAITING running": reclaim,
  },
  "found held": {
    CREATED: { to: "RELEASED" },
    "OWN idle": { to: "RELEASED" },
    "OWN running": { to: "RELEASED", act: "lose" },
    RELEASED: { to: "RELEASED" },
    "WAITING idle": { to: "RELEASED" },
    "WAITING running": { to: "RELEASED", act: "lose" },
  },
  // An idle owner does not take the lock back, because no use needs it and another contender may take it.
  "found vacant": {
    CREATED: { to: "WAITING idle" },
    "OWN idle": { to: "WAITING idle" },
    "OWN running": reclaim,
    RELEASED: { to: "WAITING idle" },
    "WAITING idle": { to: "WAITING idle" },
    "WAITING running": reclaim,
  },
  // "ours" means the holding that this lock object has. A contender without a holding never reads "ours".
  "found ours": {
    ...stay,
    CREATED: no("CREATED"),
    RELEASED: no("RELEASED"),
    "WAITING idle": no("WAITING idle"),
    "WAITING running": no("WAITING running"),
  },
  // This event precedes another event of the same reading: the other contender that held the lock may have vanished, so that the lock is
  // vacant again.
  overtaken: {
    ...stay,
    "OWN idle": { to: "RELEASED" },
    "OWN running": { to: "RELEASED", act: "lose" },
    "WAITING running": { to: "RELEASED", act: "lose" },
  },
  took: {
    CREATED: { to: "OWN idle" },
    "OWN idle": no("OWN idle"),
    "OWN running": no("OWN running"),
    RELEASED: { to: "OWN idle" },
    "WAITING idle": { to: "OWN idle" },
    "WAITING running": { to: "OWN running" },
  },
  began: {
    CREATED: no("CREATED"),
    "OWN idle": { to: "OWN running" },
    "OWN running": no("OWN running"),
    RELEASED: no("RELEASED"),
    "WAITING idle": no("WAITING idle"),
    "WAITING running": no("WAITING running"),
  },
  // A use that has already lost the lock does not change the state when it finishes.
  finished: { ...stay, "OWN running": { to: "OWN idle" }, "WAITING running": { to: "WAITING idle" } },
  released: { ...stay, "OWN idle": { to: "CREATED" }, "OWN running": no("OWN running") },
  "session ended": { ...stay, "OWN idle": { to: "WAITING idle" }, "OWN running": reclaim },
  // The owner could not take the lock back in time. From now on other contenders may take it.
  "grace over": { ...stay, "WAITING running": { to: "WAITING idle", act: "lose" } },
};

export function nextStep(situation: Situation, event: GraceLockEvent): Step {
  return table[event][situation];
}

export function stateOf(situation: Situation): GraceLockState {
  return situation.split(" ")[0] as GraceLockState;
}

/** Formats a step for docs/coordination/grace-lock.md; a dash means that nothing changes. */
export function stepText(situation: Situation, event: GraceLockEvent): string {
  const { to, act } = nextStep(situation, event);
  if (act === "refuse") return "impossible";
  if (act) return `${to} (${act})`;
  return to === situation ? "–" : to;
}
