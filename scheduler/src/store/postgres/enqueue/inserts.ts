import { anyInsertSql } from "./any-enqueue.ts";
import type { Durability } from "./durability.ts";
import { oneInsertSql } from "./one-enqueue.ts";
import { plainInsertSql } from "./plain-enqueue.ts";

/**
 * The SQL texts of the inserts of one durability. They are built only once, because pg compares the text of a named statement with the
 * prepared text at each call, and comparing a string with itself is fast.
 */
export interface Inserts {
  any: Record<"run-insert" | "run-insert-keyed" | "run-insert-here" | "run-insert-keyed-here", string>;
  plain: string;
  one: string;
  /** The end of the names under which the statements are prepared. */
  end: string;
}

const insertsWith = (s: string, durability: Durability): Inserts => ({
  any: {
    "run-insert": anyInsertSql(s, { keyed: false, here: false, durability }),
    "run-insert-keyed": anyInsertSql(s, { keyed: true, here: false, durability }),
    "run-insert-here": anyInsertSql(s, { keyed: false, here: true, durability }),
    "run-insert-keyed-here": anyInsertSql(s, { keyed: true, here: true, durability }),
  },
  plain: plainInsertSql(s, durability),
  one: oneInsertSql(s, durability),
  end: durability === "full" ? "" : `-${durability}`,
});

export const insertsOf = (s: string): Record<Durability, Inserts> => ({
  full: insertsWith(s, "full"),
  "by-task": insertsWith(s, "by-task"),
  relaxed: insertsWith(s, "relaxed"),
});
