import { describe, expect, it } from "vitest";
import { localOf, randomExpression } from "../../test/support/cron-oracle.ts";
import { isCarillonError } from "../base/errors.ts";
import { seeded } from "../base/random.ts";
import { at, compileSchedule, cron, every, manual } from "./schedule.ts";

const words = (expression: string, zone?: string) => compileSchedule(cron(expression, { zone })).words();

describe("schedules in words", () => {
  const table: [expression: string, words: string][] = [
    ["* * * * *", "every minute"],
    ["* * * * * *", "every second"],
    ["*/5 * * * *", "every 5 minutes"],
    ["0,15,30,45 * * * *", "every 15 minutes"],
    ["*/30 * * * *", "every 30 minutes"],
    ["*/7 * * * *", "every 7 minutes from minute 0 of every hour"],
    ["*/10 * * * * *", "every 10 seconds"],
    ["5/10 * * * * *", "every 10 seconds from second 5 of every minute"],
    ["30 * * * * *", "at second 30 of every minute"],
    ["0 * * * *", "every hour"],
    ["@hourly", "every hour"],
    ["15 * * * *", "at minute 15 of every hour"],
    ["5,35 * * * *", "at minutes 5 and 35 of every hour"],
    ["10-20 * * * *", "at minutes 10 to 20 of every hour"],
    ["0 */2 * * *", "every 2 hours"],
    ["15 */2 * * *", "every 2 hours from 00:15"],
    ["0 */5 * * *", "at 00:00, 05:00, 10:00, 15:00 and 20:00 every day"],
    ["@daily", "at 00:00 every day"],
    ["30 15 10 * * *", "at 10:15:30 every day"],
    ["17 3,15 * * *", "at 03:17 and 15:17 every day"],
    ["0 9-17 * * *", "every hour from 09:00 to 17:00"],
    ["30 20-5 * * *", "every hour from 20:30 to 05:30"],
    ["*/15 9-17 * * MON-FRI", "every 15 minutes from 09:00 to 17:59 on weekdays"],
    ["*/10 22-2 * * *", "every 10 minutes from 22:00 to 02:59"],
    ["0 0 * * 1-5", "at 00:00 on weekdays"],
    ["0 0 * * 6,0", "at 00:00 on weekends"],
    ["@weekly", "at 00:00 on Sundays"],
    ["0 8 * 6-8 MON,WED", "at 08:00 on Mondays and Wednesdays in June to August"],
    ["0 0 * * FRI-MON", "at 00:00 on Fridays to Mondays"],
    ["@monthly", "at 00:00 on day 1 of the month"],
    ["0 0 1-7 * *", "at 00:00 on days 1 to 7 of the month"],
    ["0 0 1 1,7 *", "at 00:00 on day 1 of January and July"],
    ["@yearly", "at 00:00 on 1 January"],
    ["0 0 L * *", "at 00:00 on the last day of the month"],
    ["0 0 L-3 * *", "at 00:00 on the 3rd day before the last day of the month"],
    ["0 0 15,L * *", "at 00:00 on day 15 and the last day of the month"],
    ["0 12 LW * *", "at 12:00 on the last weekday of the month"],
    ["0 12 15W * ?", "at 12:00 on the weekday nearest to day 15 of the month"],
    ["0 8 * * FRI#2", "at 08:00 on the second Friday of the month"],
    ["0 8 * 3 FRIL", "at 08:00 on the last Friday of March"],
    ["30 4 1,15 * 5", "at 04:30 on days 1 and 15 of the month or on Fridays"],
    ["0 0 13 * 7,*", "at 00:00 every day"],
    ["0 0 1-31 * MON", "at 00:00 every day"],
    ["0 0 29 2 MON", "at 00:00 on 29 February or on Mondays in February"],
    ["0 0 */2 * MON", "at 00:00 on every 2nd day from day 1 of the month, only on Mondays"],
    ["0 0 0 1 1 ? 2030-2035", "at 00:00 on 1 January in 2030 to 2035"],
    ["0 0 * JAN *", "at 00:00 every day in January"],
    ["1,2,3,7 1-5/2 * * *", "at minutes 1 to 3 and 7 of hours 1, 3 and 5 every day"],
    ["10-20 5 * * *", "at minutes 10 to 20 of hour 5 every day"],
  ];
  it.each(table)("%s", (expression, expected) => {
    expect(words(expression)).toBe(`${expected}, UTC`);
  });

  it("names the zone", () => {
    expect(words("0 0 * * 1-5", "Asia/Shanghai")).toBe("at 00:00 on weekdays, Asia/Shanghai");
    expect(words("0 0 0 L * ?", "asia/shanghai")).toBe("at 00:00 on the last day of the month, Asia/Shanghai");
  });

  it("describes other kinds of schedule too", () => {
    expect(compileSchedule(every("5m")).words()).toBe("every 5 minutes");
    expect(compileSchedule(every("1h")).words()).toBe("every hour");
    expect(compileSchedule(every("1h30m")).words()).toBe("every 90 minutes");
    expect(compileSchedule(every("1.25s")).words()).toBe("every 1s250ms");
    expect(compileSchedule(every("1m", { mode: "delay" })).words()).toBe("1 minute after the end of the last run");
    expect(compileSchedule(at("2030-01-31T09:00:00+01:00")).words()).toBe("once, at 2030-01-31T08:00:00Z");
    expect(compileSchedule(manual).words()).toBe("only when asked");
  });

  const seed = Math.floor(Math.random() * 2 ** 31);
  it(`has a complete sentence for any expression (seed ${seed})`, () => {
    const random = seeded(seed);
    let said = 0;
    for (let i = 0; i < 3000; i++) {
      const { text } = randomExpression(() => random.next(), localOf(2e11 + random.next() * 4e12));
      let sentence: string;
      try {
        sentence = words(text);
      } catch (error) {
        if (isCarillonError(error, "CRON_NEVER")) continue;
        throw error;
      }
      said++;
      expect(sentence, text).toMatch(/^(?:every|at) [\w ,:()]+, UTC$/);
      expect(sentence, text).not.toMatch(/undefined|NaN|null| {2}|of of|on on|on of| ,|on ,|minutes? of hours?$/);
    }
    expect(said).toBeGreaterThan(2000);
  });
});
