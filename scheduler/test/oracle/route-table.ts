/**
 * The life of a ready run of a routed task: its addressee, and the workers that may claim it. docs/routing.md shows the table, and tests
 * hold the store to it.
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

/** The next state of an address; undefined if the event changes nothing. */
export const addressTable: Record<AddressState, Partial<Record<AddressEvent, AddressState>>> = {
  unaddressed: { "is addressed": "addressed" },
  addressed: {
    "its addressee claims": "claimed",
    "its addressee ends": "unaddressed",
    "its addressee drains": "unaddressed",
    "is late": "unaddressed",
    "its task is edited": "unaddressed",
  },
  // If its worker ends, the reaper handles its claim: see docs/states.md.
  claimed: { "is released": "unaddressed", retries: "unaddressed" },
};
