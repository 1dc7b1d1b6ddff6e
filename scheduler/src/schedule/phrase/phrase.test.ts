import { describe, expect, it } from "vitest";
import { localOf, randomExpression } from "../../../test/support/cron-oracle.ts";
import { isCarillonError } from "../../base/errors.ts";
import { seeded } from "../../base/random.ts";
import { compileSchedule, cron, nextSlots } from "../schedule.ts";
import { cronOfPhrase } from "./phrase.ts";

describe("a phrase", () => {
  it.each([
    ["every weekday at 9:30", "30 9 * * MON-FRI"],
    ["Every day at noon", "0 12 * * *"],
    ["daily at 5pm", "0 17 * * *"],
    ["daily", "0 0 * * *"],
    ["hourly", "0 * * * *"],
    ["weekly", "0 0 * * SUN"],
    ["weekly on monday at 9am", "0 9 * * MON"],
    ["monthly on the 1st at 8:00", "0 8 1 * *"],
    ["quarterly on the 1st at 6:00", "0 6 1 */3 *"],
    ["every year on 4 july at 12:00", "0 12 4 7 *"],
    ["every monday and thursday at 14:00", "0 14 * * MON,THU"],
    ["mon, wed and fri at 08:15", "15 8 * * MON,WED,FRI"],
    ["monday to friday at 9:30", "30 9 * * MON-FRI"],
    ["every 15 minutes on weekdays from 9:00 to 17:59", "*/15 9-17 * * MON-FRI"],
    ["every hour from 9:00 to 17:00 on weekdays", "0 9-17 * * MON-FRI"],
    ["every two hours", "0 */2 * * *"],
    ["every hour at minute 12", "12 * * * *"],
    ["every 6 hours at minutes 5 and 35 on weekdays", "5,35 */6 * * MON-FRI"],
    ["every 30 min", "*/30 * * * *"],
    ["on the last day of the month at midnight", "0 0 L * *"],
    ["the first Monday of the month at 9 a.m.", "0 9 * * MON#1"],
    ["every month on the last friday at 17:00", "0 17 * * FRIL"],
    ["on the second tuesday of march at 10:00", "0 10 * 3 TUE#2"],
    ["every january 1st at 0:00", "0 0 1 1 *"],
    ["on the 15th and 30th at 6pm", "0 18 15,30 * *"],
    ["at 9:00, 12:00 and 15:00 on weekdays", "0 9,12,15 * * MON-FRI"],
    ["at 12am", "0 0 * * *"],
    ["every day at 9:00 in 2027", "0 0 9 * * * 2027"],
    ["every 10 seconds", "*/10 * * * * *"],
  ])("%s → %s", (phrase, expression) => {
    expect(cronOfPhrase(phrase)).toEqual({ expression, zone: null });
  });

  it("may name its zone", () => {
    expect(cronOfPhrase("at 02:00 every day, Europe/Berlin").zone).toBe("Europe/Berlin");
    expect(cronOfPhrase("every sunday at 3:15 am UTC").zone).toBe("UTC");
  });

  it.each([
    ["at 9", "at 09:00"],
    ["every day at 12", "at 00:00"],
    ["every friday", "every friday at 09:00"],
    ["every 15 minutes from 9:00 to 17:00", "from 09:00 to 16:59"],
    ["every other day at 9:00", "every 2nd day from day 1"],
    ["every second tuesday at 10:00", "on the 2nd tuesday of the month"],
    ["on friday the 13th at 9:00", "first Monday"],
    ["every 7 minutes", "from minute 0"],
    ["every 90 minutes", "For example"],
    ["every two weeks", "For example"],
    ["every 3 days at 9:00", "every 3rd day from day 1"],
    ["at 9:00 and 17:30", "at 17:30"],
    ["weekly at 9:00", "on Mondays"],
    ["monthly at 9:00", "on day 1"],
    ["evry monday at 9:00", "every monday at 9:00"],
    ["every mondey at 9:00", "every monday at 9:00"],
    ["at 25:00", "at 23:59"],
    ["13pm", "For example"],
    ["on day 32 of the month at 9:00", "For example"],
    ["every weekday at 9:30 except holidays", "For example"],
    ["every day on mondays at 9:00", "For example"],
    ["at 9:00 at 10:00", "For example"],
    ["; drop table", "For example"],
    ["every", "For example"],
    ["", "For example"],
  ])("that is ambiguous or meaningless is refused with a suggestion: %s", (phrase, hint) => {
    expect(() => cronOfPhrase(phrase)).toThrow(
      expect.objectContaining({ code: "CRON_INVALID", hint: expect.stringContaining(hint) }),
    );
  });

  const seed = Math.floor(Math.random() * 2 ** 31);
  it(`parses every description of a cron to the same next 20 slots (seed ${seed})`, () => {
    const random = seeded(seed);
    let read = 0;
    for (let i = 0; i < 2_000; i++) {
      const { text } = randomExpression(() => random.next(), localOf(2e11 + random.next() * 4e12));
      let spec: ReturnType<typeof cron>;
      try {
        spec = cron(text, { zone: "America/New_York" });
      } catch (error) {
        if (isCarillonError(error, "CRON_NEVER")) continue;
        throw error;
      }
      const said = compileSchedule(spec).words();
      const { expression, zone } = cronOfPhrase(said);
      const again = cron(expression, { zone: zone ?? "UTC" });
      const from = Date.UTC(1990 + Math.floor(random.next() * 60), 0, 1);
      expect(nextSlots(again, from, 20), `${text}: ${said}: ${expression}`).toEqual(nextSlots(spec, from, 20));
      expect(compileSchedule(again).words(), text).toBe(said);
      read++;
    }
    expect(read).toBeGreaterThan(1_500);
  });

  it("of random words gives a cron or is refused", () => {
    const random = seeded(seed);
    const words =
      "at every on the of in from to and or only a last day second minute hour month monday 9:30 5pm 3 2nd , 31 weekday january nearest before noon".split(
        " ",
      );
    for (let i = 0; i < 3_000; i++) {
      const phrase = Array.from(
        { length: 1 + Math.floor(random.next() * 9) },
        () => words[Math.floor(random.next() * words.length)],
      ).join(" ");
      try {
        cron(cronOfPhrase(phrase).expression);
      } catch (error) {
        if (!isCarillonError(error)) throw new Error(`${phrase} (seed ${seed})`, { cause: error });
      }
    }
  });
});
