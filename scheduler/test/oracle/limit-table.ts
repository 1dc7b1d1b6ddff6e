/**
 * By limit and event: what becomes of the place or token that a run has taken. After `free` another run may start; after `taken`
 * no other run may start in its place. docs/tasks/limits.md shows the table, and tests check the store against it.
 */
export const limitPolicies = ["overlap", "perKey", "perWorker", "perGroup", "rate", "rate by key"] as const;
export type LimitPolicy = (typeof limitPolicies)[number];

export const limitEvents = [
  "begins",
  "ends",
  "retries",
  "is released",
  "is lost",
  "is cancelled",
  "the span passes",
] as const;
export type LimitEvent = (typeof limitEvents)[number];

type Room = "free" | "taken";

/**
 * Rows of a limit that counts running runs. Between two attempts, the place in a task's or key's limit stays taken, so that the order of
 * runs is kept; the place in a worker's or group's limit is free, so that another run may start.
 */
const place = (between: Room): Record<LimitEvent, Room> => ({
  begins: "taken",
  ends: "free",
  retries: between,
  "is released": between,
  "is lost": between,
  "is cancelled": "free",
  "the span passes": "taken",
});

/** Rows of a rate limit: a run that has started has used up its token, and only time restores the token. */
const token: Record<LimitEvent, Room> = {
  begins: "taken",
  ends: "taken",
  retries: "taken",
  "is released": "taken",
  "is lost": "taken",
  "is cancelled": "taken",
  "the span passes": "free",
};

export const limitTable: Record<LimitPolicy, Record<LimitEvent, Room>> = {
  overlap: place("taken"),
  perKey: place("taken"),
  perWorker: place("free"),
  perGroup: place("free"),
  rate: token,
  "rate by key": token,
};
