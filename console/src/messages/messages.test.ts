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
  test("exist in both languages, with the same placeholders", () => {
    expect(Object.keys(zh).sort()).toEqual([...keys].sort());
    for (const key of keys) {
      expect([key, zh[key].trim() === ""]).toEqual([key, false]);
      expect([key, places(zh[key])]).toEqual([key, places(en[key])]);
    }
  });

  test("differ between Chinese and English, unless they contain no English word", () => {
    const same = keys.filter((key) => zh[key] === en[key] && /[a-z]{3}/i.test(en[key]));
    expect(same).toEqual([]);
  });

  test("have full-width punctuation beside Chinese characters", () => {
    const half = /\p{Script=Han}[,:;?!()]|[,:;?!()]\p{Script=Han}/u;
    expect(keys.filter((key) => half.test(zh[key])).map((key) => zh[key])).toEqual([]);
  });

  test("use the same Chinese term for the same concept", () => {
    // The fixed terms are 运行 (run, counted with 次), 时刻 (slot), 载荷 (payload), 调度 (schedule) and 您 (you); these are other words for them.
    const others = /执行记录|运行记录|个运行|条运行|时间点|触发时间|触发时刻|负载字节|时间安排|你|……/;
    expect(keys.filter((key) => others.test(zh[key])).map((key) => zh[key])).toEqual([]);
    const docs = join(source, "../../docs/zh");
    const pages = readdirSync(docs, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"));
    expect(pages.length).toBeGreaterThan(10);
    const named = (file: string) =>
      readFileSync(join(docs, file), "utf8").match(/.*(?:执行记录|运行记录|条运行|你).*/g) ?? [];
    expect(pages.flatMap(named)).toEqual([]);
  });

  test("contain no English in the Chinese texts except names, codes and literal input", () => {
    const kept =
      /\{\w+\}|carillon [a-z ]+|weekdays at 9:30|OpenID Connect|iCalendar|Slack|Teams|Telegram|PagerDuty|Opsgenie|Carillon|crontab|cron|Webhook|JSON|HTTP|API|NTP|Node\.js|ics|billing\/bank|customer=42, region=eu|gpu=a100, zone=eu|KiB/gi;
    const left = keys.filter((key) => /[a-z]{3}/i.test(zh[key].replaceAll(kept, "")));
    expect(left.map((key) => zh[key])).toEqual([]);
  });

  test("translate the server's short sentences into Chinese, and leave unknown sentences unchanged", () => {
    const { told } = wordsIn("zh", "Asia/Shanghai");
    expect(told("calendar de: 2026-12-25 is a holiday, and no other day is within 31 days")).toBe(
      "日历 de：2026-12-25 是假日，且 31 天内没有其他日子",
    );
    expect(told("blackout 2031-01-01T00:00:00.000Z to 2031-01-01T01:00:00.000Z: delayed")).toBe(
      "停运时段 2031年1月1日周三 08:00 至 2031年1月1日周三 09:00：已推迟",
    );
    expect(told("calendar de: moved from 2026-12-25; blackout 05:00 to 06:00 UTC: delayed")).not.toMatch(/[a-z]{4}/);
    expect(told("silent for 15000 ms, seen by atlas")).toBe("静默 15000 毫秒，由 atlas 发现");
    expect(told("deposed: another is first in line")).toBe("已被取代：另一节点排在最前");
    expect(told("a sentence of a newer server")).toBe("a sentence of a newer server");
    expect(wordsIn("en", "UTC").told("stopped")).toBe("stopped");
  });

  test("are plain English: they name the actor, and what a thing is", () => {
    // Words that the English texts avoid, because a text should name the actor, such as "no worker" instead of "nobody".
    const private_ =
      /\b(?:nobody|somebody|whoever|anybody|told|tells?|hears?|heard|mend|so many|so often)\b|knows? of/i;
    expect(keys.filter((key) => private_.test(en[key])).map((key) => en[key])).toEqual([]);
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

  test("show a day's year if it differs from the current year in the displayed zone", () => {
    const [now, later] = [Date.parse("2026-11-28T12:00:00Z"), Date.parse("2037-11-28T12:00:00Z")];
    const { day } = wordsIn("en", "UTC");
    expect(day(now, "UTC", now)).toBe("Sat 28 Nov");
    expect(day(later, "UTC", now)).toBe("Sat 28 Nov 2037");
    const eve = Date.parse("2026-12-31T23:30:00Z");
    expect(day(eve, "Europe/Berlin", now)).toContain("2027");
    expect(day(eve, "UTC", now)).not.toContain("2026");
    expect(wordsIn("zh", "UTC").day(later, "UTC", now)).toContain("2037");
  });

  test("format all times alike, and a distant time as a date", () => {
    const now = Date.parse("2026-11-28T12:00:00Z");
    const { away, when, moment, told } = wordsIn("en", "Europe/Berlin");
    expect(moment(now)).toBe("Sat 28 Nov 2026 13:00:00 GMT+1");
    expect(when(now, "Asia/Shanghai", now)).toBe("Sat 28 Nov 20:00");
    expect(when(now + 1_000, "UTC", now)).toBe("Sat 28 Nov 12:00:01");
    expect(away(now + 5 * 86_400_000, now)).toBe("in 5 d");
    expect(away(Date.parse("2046-03-11T00:00:00Z"), now)).toBe("Sun 11 Mar 2046");
    expect(away(Date.parse("2024-03-11T00:00:00Z"), now)).toBe("Mon 11 Mar 2024");
    const atDayEnd = Date.parse("2046-03-11T20:00:00Z");
    expect(away(atDayEnd, now)).toBe("Sun 11 Mar 2046");
    expect(away(atDayEnd, now, "Asia/Shanghai")).toBe("Mon 12 Mar 2046");
    expect(away(now + 5 * 86_400_000, now, "Asia/Shanghai")).toBe("in 5 d");
    expect(wordsIn("zh", "UTC").away(Date.parse("2046-03-11T00:00:00Z"), now)).toBe("2046年3月11日周日");
    // The server writes instants in UTC.
    expect(told("blackout 2031-01-01T23:00:00.000Z to 2031-01-02 05:00:30Z, see A-12T3")).toBe(
      "blackout Thu 2 Jan 2031 00:00 to Thu 2 Jan 2031 06:00:30, see A-12T3",
    );
  });

  test("show the message key if a newer server sends an unknown one", () => {
    expect(wordsIn("zh", "UTC").t("alarm.stranger" as Message)).toBe("alarm.stranger");
  });

  test("fill in placeholders and plural forms", () => {
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
