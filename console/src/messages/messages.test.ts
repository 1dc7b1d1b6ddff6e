import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { en } from "./en/en.ts";
import { filled, type Message, spanText, wordsIn } from "./texts.ts";
import { zh } from "./zh/zh.ts";

const source = join(dirname(fileURLToPath(import.meta.url)), "..");
const places = (text: string) => [...new Set([...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))].sort();
const keys = Object.keys(en) as (keyof typeof en)[];

describe("messages", () => {
  test("are there in both languages, with the same places for values", () => {
    expect(Object.keys(zh).sort()).toEqual([...keys].sort());
    for (const key of keys) {
      expect([key, zh[key].trim() === ""]).toEqual([key, false]);
      expect([key, places(zh[key])]).toEqual([key, places(en[key])]);
    }
  });

  test("are in Chinese where they are Chinese", () => {
    const same = keys.filter((key) => zh[key] === en[key] && /[a-z]{3}/i.test(en[key]));
    expect(same).toEqual([]);
  });

  test("have full-width punctuation beside Chinese characters", () => {
    const half = /\p{Script=Han}[,:;?!()]|[,:;?!()]\p{Script=Han}/u;
    expect(keys.filter((key) => half.test(zh[key])).map((key) => zh[key])).toEqual([]);
  });

  test("are all used", () => {
    const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter(
      (file) => /\.tsx?$/.test(file) && !/^messages.(?:en|zh)/.test(file),
    );
    const code = files.map((file) => readFileSync(join(source, file), "utf8")).join("\n");
    const made = [...code.matchAll(/`([\w.]+)\.?\$\{[^`]*`/g)].map(
      ([whole]) =>
        new RegExp(
          `^${whole
            .slice(1, -1)
            .replace(/\$\{[^}]*\}/g, "[\\w.]+")
            .replaceAll(".", "\\.")
            .replaceAll("[\\w\\.]+", "[\\w.]+")}$`,
        ),
    );
    const unused = keys.filter((key) => !code.includes(`"${key}"`) && !made.some((pattern) => pattern.test(key)));
    expect(unused).toEqual([]);
  });

  test("name the year of a day in another year than this, in the zone that is shown", () => {
    const [now, later] = [Date.parse("2026-11-28T12:00:00Z"), Date.parse("2037-11-28T12:00:00Z")];
    const { day } = wordsIn("en", "UTC");
    expect(day(now, "UTC", now)).toBe("Sat 28 Nov");
    expect(day(later, "UTC", now)).toMatch(/^Sat,? 28 Nov 2037$/);
    const eve = Date.parse("2026-12-31T23:30:00Z");
    expect(day(eve, "Europe/Berlin", now)).toContain("2027");
    expect(day(eve, "UTC", now)).not.toContain("2026");
    expect(wordsIn("zh", "UTC").day(later, "UTC", now)).toContain("2037");
  });

  test("that a newer server brings are shown as they are", () => {
    expect(wordsIn("zh", "UTC").t("alarm.stranger" as Message)).toBe("alarm.stranger");
  });

  test("are filled", () => {
    expect(filled("{n} run|{n} runs", "en", { n: 1 })).toBe("1 run");
    expect(filled("{n} run|{n} runs", "en", { n: 12_345 })).toBe("12,345 runs");
    expect(filled("$& {what} {other}", "en", { what: "$&" })).toBe("$& $& {other}");
    expect([0, 999, 1_500, 61_000, 3_600_000, 90_000_000].map((ms) => spanText(ms, "en"))).toEqual([
      "0 ms",
      "999 ms",
      "1.5 s",
      "1 min 1 s",
      "1 h",
      "1 d 1 h",
    ]);
  });
});
