import type { CronSets, DayChoice, WeekdayChoice } from "../cron-text.ts";
import { nth } from "../in-words.ts";
import { around, PhraseLine, range } from "./line.ts";
import { monthOf, weekdayOf } from "./words.ts";

const weekdayCode = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/** Parses the days, months and years of a phrase. */
export class PhraseDays extends PhraseLine {
  protected day: DayChoice | null = null;
  protected weekday: WeekdayChoice | null = null;
  /** How days of the month and weekdays are combined; null if the phrase does not say so. */
  protected join: CronSets["join"] | null = null;
  protected months: number[] | null = null;
  protected years: number[] | null = null;

  /** Parses the list after "on": days of the month or weekdays. */
  protected on(): void {
    const day: DayChoice = { days: [], special: [] };
    const weekday: WeekdayChoice = { days: [], special: [] };
    const before = this.at;
    do {
      this.eat("the");
      if (!this.dayItem(day, weekday)) break;
    } while (this.separator((_, at) => this.startsDays(at)));
    if (this.at === before) throw this.unknown(this.peek());
    const [hasDay, hasWeekday] = [day, weekday].map((choice) => choice.days.length + choice.special.length > 0);
    if (hasDay && hasWeekday)
      throw this.refuse("days of the month and days of the week stand in one list", [
        "on day 13 of the month or on Fridays",
      ]);
    if ((hasDay && this.day) || (hasWeekday && this.weekday)) throw this.refuse("its days are said twice");
    if (hasDay) this.day = day;
    if (hasWeekday) this.weekday = weekday;
    if (this.eat("of")) {
      this.eat("the");
      this.eat("every");
      if (!this.eat("month")) this.setMonths(this.monthList());
    }
  }

  protected dayItem(day: DayChoice, weekday: WeekdayChoice): boolean {
    const token = this.peek();
    if (!token) return false;
    if (this.word("every") && (this.peek(1)?.kind === "ordinal" || this.word("second", 1)) && this.word("day", 2))
      return this.stepDays(day);
    if (token.kind === "word") {
      if (this.eat("weekdays")) return this.add(weekday.days, range(1, 5));
      if (this.word("weekday") && !this.word("nearest", 1))
        return this.eat("weekday") && this.add(weekday.days, range(1, 5));
      if (this.eat("weekday")) {
        this.must("nearest");
        this.must("to");
        return this.nearest(day);
      }
      if (this.eat("weekends") || this.eat("weekend")) return this.add(weekday.days, [0, 6]);
      if (this.eat("last")) return this.last(day, weekday);
      if (this.eat("day") || this.eat("days")) return this.add(day.days, this.numbers(1, 31, 31, 1));
      const name = weekdayOf(token.text);
      if (name !== undefined) return this.weekdays(name, weekday);
      const month = monthOf(token.text);
      if (month !== undefined) {
        this.at++;
        this.setMonths([month]);
        const number = this.next();
        if (number?.kind !== "number" && number?.kind !== "ordinal")
          throw this.refuse("the day of the month is missing", ["on 1 January"]);
        return this.add(day.days, [this.inMonth(number.value)]);
      }
      if (this.isOrdinalSecond()) return this.ordinal(2, day, weekday);
      return false;
    }
    if (token.kind === "ordinal") return this.ordinal(token.value, day, weekday);
    if (token.kind === "number") {
      // Parses dates such as "1 January" and "1 to 7 January".
      const values = this.numbers(1, 31, 31, 1);
      const next = this.peek();
      const month = next?.kind === "word" ? monthOf(next.text) : undefined;
      if (month === undefined)
        throw this.refuse(`${values.join(", ")}: of what is not said`, [
          `on day ${values[0]} of the month`,
          `on ${values[0]} January`,
        ]);
      this.at++;
      this.setMonths([month]);
      return this.add(day.days, values);
    }
    return false;
  }

  protected weekdays(first: number, weekday: WeekdayChoice): boolean {
    this.at++;
    const after = this.peek(1);
    const last = this.word("to") && after?.kind === "word" ? weekdayOf(after.text) : undefined;
    if (last === undefined) return this.add(weekday.days, [first]);
    this.at += 2;
    return this.add(weekday.days, around(first, last, 7));
  }

  protected ordinal(n: number, day: DayChoice, weekday: WeekdayChoice): boolean {
    const next = this.peek(1);
    const name = next?.kind === "word" ? weekdayOf(next.text) : undefined;
    if (name !== undefined) {
      if (n > 5) throw this.refuse(`no month has a ${nth(n)} ${next?.text}`);
      this.at += 2;
      weekday.special.push(`${weekdayCode[name]}#${n}`);
      return true;
    }
    this.at++;
    if (this.eat("day")) {
      if (this.eat("before")) {
        this.eat("the");
        this.must("last");
        this.must("day");
        day.special.push(`L-${n}`);
        return true;
      }
      return this.add(day.days, [this.inMonth(n)]);
    }
    if (this.word("weekday"))
      throw this.refuse("the n-th weekday of a month is no day that a cron knows", [
        "on the weekday nearest to day 1 of the month",
        "on the last weekday of the month",
      ]);
    const month =
      this.word("of") && this.peek(1)?.kind === "word" ? monthOf((this.peek(1) as { text: string }).text) : undefined;
    const direct = this.peek()?.kind === "word" ? monthOf((this.peek() as { text: string }).text) : undefined;
    if (direct !== undefined && month === undefined) {
      this.at++;
      this.setMonths([direct]);
    }
    return this.add(day.days, [this.inMonth(n)]);
  }

  protected last(day: DayChoice, weekday: WeekdayChoice): boolean {
    const token = this.peek();
    if (this.eat("day")) return day.special.push("L") > 0;
    if (this.eat("weekday")) return day.special.push("LW") > 0;
    const name = token?.kind === "word" ? weekdayOf(token.text) : undefined;
    if (name === undefined)
      throw this.refuse("the last what", ["on the last day of the month", "on the last Friday of the month"]);
    this.at++;
    return weekday.special.push(`${weekdayCode[name]}L`) > 0;
  }

  /** Parses the day after "the weekday nearest", such as "day 15" or "the 3rd day before the last day". */
  protected nearest(day: DayChoice): boolean {
    this.eat("the");
    if (this.eat("day")) return day.special.push(`${this.number(1, 31)}W`) > 0;
    const n = this.next();
    if (n?.kind === "ordinal") {
      if (!this.eat("day")) return day.special.push(`${this.inMonth(n.value)}W`) > 0;
      for (const word of ["before", "the", "last", "day"]) this.must(word);
      return day.special.push(`L-${n.value}W`) > 0;
    }
    throw this.refuse("nearest to which day", ["on the weekday nearest to day 15 of the month"]);
  }

  protected stepDays(day: DayChoice): boolean {
    const token = this.peek(1);
    const by = token?.kind === "ordinal" ? token.value : 2;
    this.at += 3;
    if (!this.eat("from"))
      throw this.refuse("from which day is not said, and each month begins anew", [
        `on every ${nth(by)} day from day 1 of the month`,
      ]);
    this.must("day");
    const first = this.number(1, 31);
    return this.add(
      day.days,
      range(first, 31).filter((value) => (value - first) % by === 0),
    );
  }

  protected in(): void {
    this.eat("the");
    if (this.peek()?.kind === "number") {
      const years = this.numbers(1970, 2200);
      if (this.years) throw this.refuse("its years are said twice");
      this.years = years;
      return;
    }
    this.setMonths(this.monthList());
  }

  protected monthList(): number[] {
    const months: number[] = [];
    const name = (at: number) => {
      const token = this.peek(at);
      return token?.kind === "word" ? monthOf(token.text) : undefined;
    };
    do {
      const first = name(0);
      if (first === undefined) throw this.unknown(this.peek());
      const last = this.word("to", 1) ? name(2) : undefined;
      this.at += last === undefined ? 1 : 3;
      months.push(...(last === undefined ? [first] : around(first, last, 12, 1)));
    } while (this.separator((_, at) => name(at) !== undefined));
    return months;
  }

  protected setMonths(months: number[]): void {
    const same = this.months === null || [...this.months].sort().join() === [...months].sort().join();
    if (!same) throw this.refuse("its days lie in other months each", ["on 1 January", "on day 1 of January and July"]);
    this.months = months;
  }

  protected inMonth(day: number): number {
    if (day >= 1 && day <= 31) return day;
    throw this.refuse(`no month has a day ${day}`);
  }

  protected isOrdinalSecond(): boolean {
    const next = this.peek(1);
    return this.word("second") && next?.kind === "word" && (next.text === "day" || weekdayOf(next.text) !== undefined);
  }

  protected startsDays(ahead = 0): boolean {
    const at = this.word("the", ahead) ? ahead + 1 : ahead;
    const token = this.peek(at);
    if (!token) return false;
    if (token.kind === "ordinal") return true;
    if (token.kind === "number") {
      // "1 January" begins a list of days; "9" alone does not.
      let next = at + 1;
      while (
        ["number", "comma"].includes(this.peek(next)?.kind ?? "") ||
        this.word("to", next) ||
        this.word("and", next)
      )
        next++;
      const after = this.peek(next);
      return after?.kind === "word" && monthOf(after.text) !== undefined;
    }
    if (token.kind !== "word") return false;
    if (/^(?:weekdays?|weekends?|last|days?)$/.test(token.text)) return true;
    if (token.text === "every") return this.peek(at + 1)?.kind === "ordinal";
    if (token.text === "second")
      return weekdayOf((this.peek(at + 1) as { text?: string } | undefined)?.text ?? "") !== undefined;
    return weekdayOf(token.text) !== undefined || monthOf(token.text) !== undefined;
  }
}
