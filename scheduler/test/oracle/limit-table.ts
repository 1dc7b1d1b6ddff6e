/**
 * The effect of each event on the slot or token that a run took: after `free` another run may begin, after `taken` it may not.
 * docs/limits.md shows the table, and tests hold the store to it.
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
 * A slot of a task or key is kept between two tries, so that the order is kept. A slot of a worker or group is freed between tries,
 * so another run may begin.
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

/** A started run has used its token: only time brings it back. */
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
