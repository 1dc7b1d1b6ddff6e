/**
 * The states of a ready run of a routed task: whether it is addressed to a worker, and which workers may claim it. docs/tasks/routing.md
 * shows the table, and tests check the store against it.
 */
export const addressStates = ["unaddressed", "addressed", "claimed"] as const;
export type AddressState = (typeof addressStates)[number];

export const addressEvents = [
  "is addressed",
  "its addressee claims",
  "another claims",
  "its addressee ends",
  "its addressee drains",
  "is late",
  "is released",
  "retries",
  "its task is edited",
] as const;
export type AddressEvent = (typeof addressEvents)[number];

/** The next state for each state and event; undefined if the event changes nothing. */
export const addressTable: Record<AddressState, Partial<Record<AddressEvent, AddressState>>> = {
  unaddressed: { "is addressed": "addressed" },
  addressed: {
    "its addressee claims": "claimed",
    "its addressee ends": "unaddressed",
    "its addressee drains": "unaddressed",
    "is late": "unaddressed",
    "its task is edited": "unaddressed",
  },
  // If the worker's session ends, its claim is taken back: see docs/reference/states.md.
  claimed: { "is released": "unaddressed", retries: "unaddressed" },
};
