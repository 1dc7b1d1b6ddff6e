import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  delayNames,
  delayPrefix,
  idPrefix,
  plainNames,
  priorityNames,
  priorityPrefix,
  type QueueNames,
} from "./names.ts";

const number = "0000000042";
const moment = 1_700_000_000_000;

/** Returns the time that Curator's DistributedDelayQueue reads from a name: the hexadecimal number between the last two bars. */
function javaTime(name: string): number {
  const last = name.lastIndexOf("|");
  const before = last > 0 ? name.lastIndexOf("|", last - 1) : -1;
  return before > 0 && last > before + 1 ? Number.parseInt(name.slice(before + 1, last), 16) : 0;
}

describe("names of a queue's nodes", () => {
  it("are the same as Curator's", () => {
    expect(delayPrefix(moment)).toBe("queue-|18BCFE56800|");
    expect(delayPrefix(5)).toBe("queue-|00000005|");
    expect(priorityPrefix(5)).toBe("queue-100000005");
    expect(priorityPrefix(-1)).toBe("queue-0FFFFFFFF");
    expect(priorityPrefix(-(2 ** 31))).toBe("queue-080000000");
    expect(idPrefix("a/b|c")).toBe("queue-|a_b_c|");
  });

  it("are parsed", () => {
    expect(plainNames.parse(`queue-${number}`)).toEqual({ rank: 0, sequence: 42, notBeforeMs: 0, failures: 0 });
    expect(plainNames.parse(`queue-|x|${number}`)).toMatchObject({ id: "x", sequence: 42 });
    expect(priorityNames.parse(`queue-0FFFFFFFE${number}`)).toMatchObject({ rank: -2, priority: -2, sequence: 42 });
    expect(delayNames.parse(`queue-|18BCFE56800|${number}`)).toMatchObject({
      rank: moment,
      dueMs: moment,
      sequence: 42,
    });
  });

  it("are foreign without the queue's prefix", () => {
    for (const names of [plainNames, priorityNames, delayNames]) {
      expect(names.parse("locks")).toBeUndefined();
      expect(names.parse(`_c_x-queue-${number}`)).toBeUndefined();
    }
  });

  it("that Java returned to the queue are due at once, and before every priority", () => {
    expect(delayNames.parse(`queue-${number}`)).toMatchObject({ rank: 0, notBeforeMs: 0, dueMs: 0 });
    const back = priorityNames.parse(`queue-${number}`);
    expect(back?.rank).toBeLessThan(-(2 ** 31));
    expect(back?.priority).toBeUndefined();
  });

  it("with an invalid time are due at once, as in Java", () => {
    expect(delayNames.parse(`queue-|soon|${number}`)).toMatchObject({ rank: 0 });
    expect(delayNames.parse(`queue-|FFFFFFFFFFFFFFFF|${number}`)).toMatchObject({ rank: 0 });
  });

  it("of returned items carry attempts and time where Java ignores them", () => {
    const back = (names: QueueNames, name: string, failures: number, at: number) => {
      const item = names.parse(name);
      if (!item) throw new Error(`${name} was not read`);
      return `${names.retry(item, failures, at)}0000000099`;
    };
    let delayed = `queue-|18BCFE56800|${number}`;
    for (let failures = 1; failures <= 3; failures++) {
      delayed = back(delayNames, delayed, failures, moment + failures);
      expect(javaTime(delayed)).toBe(moment + failures);
      expect(delayNames.parse(delayed)).toEqual({
        rank: moment + failures,
        sequence: 99,
        notBeforeMs: moment + failures,
        failures,
        dueMs: moment,
      });
    }
    const plain = back(plainNames, `queue-${number}`, 2, moment);
    expect(plain).toBe("queue-r2,18BCFE56800-0000000099");
    expect(plainNames.parse(plain)).toMatchObject({ rank: 0, failures: 2, notBeforeMs: moment, sequence: 99 });

    const id = back(plainNames, `queue-|x|${number}`, 2, moment);
    expect(id).toBe("queue-r2,18BCFE56800|x|0000000099"); // Curator reads the text between the first two bars as the id.
    expect(plainNames.parse(id)).toMatchObject({ id: "x", failures: 2, notBeforeMs: moment });

    const urgent = back(priorityNames, `queue-0FFFFFFFE${number}`, 7, moment);
    expect(urgent).toBe("queue-0FFFFFFFEr7,18BCFE56800-0000000099");
    expect(priorityNames.parse(urgent)).toMatchObject({ rank: -2, priority: -2, failures: 7, notBeforeMs: moment });
    const nameless = back(priorityNames, `queue-${number}`, 1, moment);
    expect(priorityNames.parse(nameless)).toMatchObject({ failures: 1, notBeforeMs: moment });
  });

  it("are rebuilt from rank and sequence", () => {
    const sequence = fc.integer({ min: 0, max: 2 ** 31 - 1 });
    const again = (names: QueueNames, name: string) => {
      const item = names.parse(name);
      return item && names.format(item.rank, item.sequence);
    };
    fc.assert(
      fc.property(sequence, fc.maxSafeNat(), fc.integer(), (s, at, priority) => {
        const digits = String(s).padStart(10, "0");
        for (const [names, prefix] of [
          [plainNames, "queue-"],
          [delayNames, delayPrefix(Math.min(at, 2 ** 52))],
          [priorityNames, priorityPrefix(priority)],
          [priorityNames, "queue-"],
        ] as const) {
          expect(again(names, prefix + digits)).toBe(prefix + digits);
        }
      }),
    );
  });

  it("sort priorities in the same order as Java's texts", () => {
    fc.assert(
      fc.property(fc.integer(), fc.integer(), (a, b) => {
        expect(priorityPrefix(a) < priorityPrefix(b)).toBe(a < b);
      }),
    );
  });

  it("refuse invalid times, priorities and ids", () => {
    for (const at of [-1, 1.5, Number.NaN, 2 ** 53]) expect(() => delayPrefix(at)).toThrow(/at is/);
    for (const priority of [2 ** 31, 0.5, Number.NaN]) expect(() => priorityPrefix(priority)).toThrow(/priority is/);
    expect(() => idPrefix("")).toThrow(/id is empty/);
  });
});
