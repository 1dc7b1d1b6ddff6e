/**
 * Parses an English phrase into a cron: the sentences that in-words.ts produces, and other common wordings. A phrase with two possible
 * meanings, or whose meaning no cron expresses, is refused with suggestions, because a wrong guess would create a schedule that fires at
 * wrong times unnoticed.
 */

import { limits } from "../../base/limits.ts";
import { cronText } from "../cron-text.ts";
import { nth } from "../in-words.ts";
import { PhraseDays } from "./days.ts";
import { around, range } from "./line.ts";
import { type Clock, refusal, type Token, tokensOf, weekdayOf } from "./words.ts";

export interface PhraseCron {
  expression: string;
  /** The zone in the phrase; null if the phrase names no zone. */
  zone: string | null;
}

const two = (value: number) => String(value).padStart(2, "0");
const clockText = ({ hour, minute, second }: Clock) =>
  `${two(hour)}:${two(minute)}${second === 0 ? "" : `:${two(second)}`}`;

/** @throws CRON_INVALID for an unknown or ambiguous phrase; the error's hint suggests unambiguous phrases */
export function cronOfPhrase(phrase: string): PhraseCron {
  if (phrase.length > limits.phraseLength)
    throw refusal(phrase.slice(0, 40), `it has ${phrase.length} characters; at most ${limits.phraseLength} are read`);
  const text = phrase.trim();
  const [, before = text, zone = null] = /^(.*?)[,\s]+(?:in\s+)?(UTC|[A-Za-z]+\/[A-Za-z_+\-/\d]+)$/is.exec(text) ?? [];
  const expression = new Reader(phrase, tokensOf(before)).read();
  return { expression, zone };
}

class Reader extends PhraseDays {
  #seconds: number[] | null = null;
  #minutes: number[] | null = null;
  #hours: number[] | null = null;
  /**
   * The phrase's word for a period, such as "daily"; null if it has none. If the phrase has neither a time nor days, "hourly" means
   * minute 0 of each hour, and any other word midnight.
   */
  #usual: string | null = null;
  #anyDay = false;
  #timed = false;

  read(): string {
    if (this.tokens.length === 0) throw this.refuse("nothing is said");
    while (this.at < this.tokens.length) this.#clause();
    this.#settle();
    const said = this.day === null || this.weekday === null || this.join !== null;
    const expression = !said
      ? null
      : cronText({
          seconds: this.#seconds ?? [0],
          minutes: this.#minutes ?? [0],
          hours: this.#hours ?? range(0, 23),
          day: this.day,
          weekday: this.weekday,
          join: this.join ?? "or",
          months: this.months ?? range(1, 12),
          years: this.years,
        });
    if (expression !== null) return expression;
    throw this.refuse("a cron cannot mean days that are both, such as Friday the 13th", [
      "at 08:00 on the first Monday of the month",
    ]);
  }

  #clause(): void {
    if (this.eats("comma")) return;
    const token = this.peek();
    if (token?.kind === "clock" || this.word("at")) {
      this.#time();
      return;
    }
    if (this.word("every") || this.word("a")) {
      this.#every();
      return;
    }
    if (this.eat("on")) {
      this.on();
      return;
    }
    if (this.eat("or")) {
      this.must("on");
      this.join = "or";
      this.on();
      return;
    }
    if (this.eat("only")) {
      this.must("on");
      this.join = "and";
      this.on();
      return;
    }
    if (this.eat("in")) {
      this.in();
      return;
    }
    if (this.eat("from")) {
      this.#from();
      return;
    }
    const usual = ["hourly", "daily", "weekly", "monthly", "yearly", "quarterly"].find((word) => this.eat(word));
    if (usual !== undefined) {
      if (this.#usual) throw this.refuse(`it is ${this.#usual} and ${usual}`);
      this.#usual = usual;
      return;
    }
    if (this.startsDays()) {
      this.on();
      return;
    }
    throw this.unknown(token);
  }

  #time(): void {
    this.eat("at");
    const token = this.peek();
    if (token?.kind === "clock" || (token?.kind === "number" && !this.startsDays())) {
      this.#clocks();
      return;
    }
    if (this.eat("minute") || this.eat("minutes")) {
      this.#setOnce("minutes", this.numbers(0, 59, 60));
      if (this.peek()?.kind === "comma" && this.word("second", 1)) {
        this.at += 2;
        this.#setOnce("seconds", this.numbers(0, 59, 60));
      }
      this.#ofUnits();
      return;
    }
    if (this.eat("second") || this.eat("seconds")) {
      this.#setOnce("seconds", this.numbers(0, 59, 60));
      this.#minutes ??= null;
      this.#ofUnits("second");
      return;
    }
    throw this.refuse("what comes after at is no time", ["at 09:30", "at 5 pm", "at minute 15 of every hour"]);
  }

  #clocks(): void {
    const clocks: Clock[] = [];
    do {
      const token = this.peek();
      if (token?.kind === "clock") clocks.push(token.clock);
      else if (token?.kind === "number") throw this.#bare(token);
      else break;
      this.at++;
    } while (this.separator((next) => next?.kind === "clock" || (next?.kind === "number" && !this.startsDays(1))));
    const seconds = new Set(clocks.map(({ second }) => second));
    const minutes = new Set(clocks.map(({ minute }) => minute));
    const hours = new Set(clocks.map(({ hour }) => hour));
    const times = new Set(clocks.map(clockText));
    if (hours.size * minutes.size * seconds.size !== times.size)
      throw this.refuse(
        `one cron cannot say ${[...times].join(" and ")}`,
        [...times].slice(0, 2).map((time) => `at ${time}`),
      );
    this.#setOnce("hours", [...hours]);
    this.#setOnce("minutes", [...minutes]);
    if (seconds.size > 1 || !seconds.has(0)) this.#setOnce("seconds", [...seconds]);
  }

  #bare(token: Token & { value: number }): Error {
    const hour = token.value;
    if (hour > 23) return this.refuse(`there is no ${hour} o'clock`, ["at 09:00"]);
    const suggestions =
      hour >= 1 && hour <= 12 ? [`at ${two(hour % 12)}:00`, `at ${two((hour % 12) + 12)}:00`] : [`at ${two(hour)}:00`];
    return this.refuse(`at ${hour} could be two times`, suggestions);
  }

  /** Parses "every …": a period ("every 5 minutes"), an hour within a range of hours, or a day. */
  #every(): void {
    const began = this.at;
    this.at++;
    const number = this.peek()?.kind === "number" ? this.next() : undefined;
    const count = number?.kind === "number" ? number.value : 1;
    if (this.word("other"))
      throw this.refuse('"every other" could begin with either', [
        "every 2 hours",
        "on every 2nd day from day 1 of the month",
      ]);
    for (const unit of ["second", "minute", "hour"] as const) {
      // In "every second day", "second" is an ordinal number and not the unit.
      if (unit === "second" && number === undefined && this.isOrdinalSecond()) break;
      if (this.eat(unit) || this.eat(`${unit}s`)) {
        this.#pulse(unit, count);
        return;
      }
    }
    if (number !== undefined) throw this.#tooLong(count);
    if (this.eat("day") || this.eat("days")) {
      this.#anyDay = true;
      return;
    }
    if (this.eat("month")) {
      this.#usual ??= "monthly";
      return;
    }
    if (this.eat("year")) {
      this.#usual ??= "yearly";
      return;
    }
    if (this.word("week")) throw this.refuse("which day of the week is not said", ["at 09:00 on Mondays"]);
    const ordinal =
      this.peek()?.kind === "ordinal" ? (this.peek() as { value: number }).value : this.isOrdinalSecond() ? 2 : 0;
    const name = this.peek(1)?.text ?? "";
    if (ordinal > 1 && weekdayOf(name) !== undefined)
      throw this.refuse(`it could mean each ${nth(ordinal)} week too`, [
        `on the ${nth(ordinal)} ${name} of the month`,
        `every ${ordinal} weeks on ${name} at 09:00, counted from 2026-01-05`,
      ]);
    if (ordinal > 0 && name === "day") this.at = began;
    this.on();
  }

  #pulse(unit: "second" | "minute" | "hour", by: number): void {
    const cycle = unit === "hour" ? 24 : 60;
    if (by === 0) throw this.refuse("0 is no step");
    if (by > 1 && (cycle % by !== 0 || by >= cycle) && !(this.word("from") || (unit !== "hour" && this.word("of")))) {
      const told =
        by >= cycle
          ? []
          : [
              unit === "hour"
                ? "every 6 hours"
                : `every ${by} ${unit}s from ${unit} 0 of every ${unit === "second" ? "minute" : "hour"}`,
            ];
      throw this.refuse(
        `a cron counts anew in each ${unit === "hour" ? "day" : unit === "minute" ? "hour" : "minute"}, so ${by} ${unit}s do not fit; for a period of its own write the schedule every: ${by}${unit[0]}`,
        told,
      );
    }
    if (unit === "hour") {
      this.#hoursPulse(by);
      return;
    }
    let first = 0;
    if (this.word("from") && this.word(unit, 1)) {
      this.at += 2;
      first = this.number(0, 59);
    }
    const values = range(0, 59).filter((value) => value >= first && (value - first) % by === 0);
    this.#setOnce(unit === "second" ? "seconds" : "minutes", values);
    if (unit === "second") {
      // These seconds apply to every minute, unless the phrase restricts the minutes with "of".
      this.#ofUnits("second");
      this.#minutes ??= range(0, 59);
    } else this.#ofUnits();
    this.#timed = true;
  }

  #hoursPulse(by: number): void {
    if (!this.eat("from")) {
      this.#setOnce(
        "hours",
        range(0, 23).filter((hour) => hour % by === 0),
      );
      const saysMinutes = this.word("at") && (this.word("minute", 1) || this.word("minutes", 1));
      if (!saysMinutes) this.#minutes ??= [0];
      this.#timed = true;
      return;
    }
    const first = this.#clock();
    const last = this.eat("to") || this.eat("and") ? this.#clock() : null;
    if (last === null && 24 % by !== 0)
      throw this.refuse(`24 hours are no multiple of ${by}`, [
        "every 6 hours",
        `every ${by} hours from 00:00 to 23:00`,
      ]);
    if (last && (last.minute !== first.minute || last.second !== first.second))
      throw this.refuse("it begins and ends at other minutes of the hour", [
        `every hour from ${clockText(first)} to ${clockText({ ...first, hour: last.hour })}`,
      ]);
    const hours = last ? around(first.hour, last.hour, 24) : around(first.hour, (first.hour + 23) % 24, 24);
    this.#setOnce(
      "hours",
      hours.filter((_, at) => at % by === 0),
    );
    this.#setOnce("minutes", [first.minute]);
    if (first.second !== 0) this.#setOnce("seconds", [first.second]);
    this.#timed = true;
  }

  /** Parses the hours to which a period is restricted, such as "from 09:00 to 17:59". */
  #from(): void {
    const first = this.#clock();
    if (!(this.eat("to") || this.eat("and")))
      throw this.refuse("where it ends is not said", [`from ${clockText(first)} to 17:59`]);
    const last = this.#clock();
    const fits = this.#timed && this.#hours === null && first.minute === 0 && first.second === 0;
    const whole = last.minute === 59 && (last.second === 59 || last.second === 0);
    if (!fits || !whole)
      throw this.refuse(`whether ${clockText(last)} itself is meant is not clear`, [
        `from ${two(first.hour)}:00 to ${two((last.hour + 23) % 24)}:59`,
        `from ${two(first.hour)}:00 to ${two(last.hour)}:59`,
      ]);
    this.#hours = around(first.hour, last.hour, 24);
  }

  #clock(): Clock {
    const token = this.next();
    if (token?.kind === "clock") return token.clock;
    if (token?.kind === "number") throw this.#bare(token);
    throw this.refuse("a time of day is missing", ["from 09:00 to 17:00"]);
  }

  /** Parses "of every hour", "of minutes 1 to 3 of hour 5" or "of every 2nd hour from 1". */
  #ofUnits(within: "second" | "minute" = "minute"): void {
    this.#timed = true;
    while (this.word("of")) {
      const all = this.word("every", 1) || this.word("the", 1);
      if (all && (this.word("minute", 2) || this.word("hour", 2) || this.word("day", 2))) {
        this.at += 3;
        const unit = this.tokens[this.at - 1]?.text;
        if (unit === "minute") this.#minutes ??= range(0, 59);
        else if (within === "second") this.#minutes ??= range(0, 59);
        if (unit === "day") throw this.refuse("a day has no minutes of its own", ["at minute 15 of every hour"]);
        continue;
      }
      const step = all && this.peek(2)?.kind === "ordinal" ? (this.peek(2) as { value: number }).value : null;
      const offset = step === null ? 1 : 3;
      const unit = ["minute", "hour"].find((one) => this.word(one, offset) || this.word(`${one}s`, offset));
      if (unit === undefined) return;
      this.at += offset + 1;
      const cycle = unit === "hour" ? 24 : 60;
      let values: number[];
      if (step === null) values = this.numbers(0, cycle - 1, cycle);
      else {
        this.must("from");
        const first = this.number(0, cycle - 1);
        values = range(first, cycle - 1).filter((value) => (value - first) % step === 0);
      }
      this.#setOnce(unit === "hour" ? "hours" : "minutes", values);
    }
    if (within === "second" && this.#hours !== null) this.#minutes ??= range(0, 59);
  }

  #settle(): void {
    const days = this.day !== null || this.weekday !== null;
    const pointed = this.#hours !== null || this.#minutes !== null || this.#seconds !== null;
    if (this.#usual === "hourly" && !pointed) this.#setOnce("minutes", [0]);
    else if (this.#usual !== null) {
      const only = !pointed && !days;
      if (this.#usual === "weekly" && !this.weekday) {
        if (!only) throw this.refuse("which day of the week is not said", ["at 09:00 on Mondays"]);
        this.weekday = { days: [0], special: [] };
      }
      if (/^(?:monthly|yearly|quarterly)$/.test(this.#usual) && !days) {
        if (!only)
          throw this.refuse("which day is not said", [
            `${this.#usual} on day 1 of ${this.#usual === "yearly" ? "January" : "the month"}`,
          ]);
        this.day = { days: [1], special: [] };
      }
      if (this.#usual === "yearly" && this.months === null) {
        if (!only) throw this.refuse("which month is not said", ["at 00:00 on 1 January"]);
        this.months = [1];
      }
      if (this.#usual === "quarterly") this.setMonths([1, 4, 7, 10]);
      if (only && this.#usual !== "hourly") this.#setOnce("hours", [0]);
      if (!only && !pointed) throw this.#untimed();
      return;
    } else if (!pointed) throw this.#untimed();
    if (this.#anyDay && days) throw this.refuse("it is every day, and on some days only");
    if (this.#seconds !== null && this.#minutes === null) this.#minutes = range(0, 59);
  }

  #untimed(): Error {
    return this.refuse("the time of day is not said", [
      `${this.phrase.trim()} at 00:00`,
      `${this.phrase.trim()} at 09:00`,
    ]);
  }

  #setOnce(what: "seconds" | "minutes" | "hours", values: number[]): void {
    const present = what === "seconds" ? this.#seconds : what === "minutes" ? this.#minutes : this.#hours;
    if (present !== null) throw this.refuse(`its ${what} are said twice`);
    if (what === "seconds") this.#seconds = values;
    else if (what === "minutes") this.#minutes = values;
    else this.#hours = values;
  }

  #tooLong(count: number): Error {
    const unit = this.peek()?.text ?? "";
    const letter = { week: "w", weeks: "w", day: "d", days: "d" }[unit];
    if (letter)
      return this.refuse(
        `${count} ${unit} are no time of a calendar; for a period write the schedule every: ${count}${letter}`,
        unit.startsWith("day") ? [`on every ${nth(count)} day from day 1 of the month`] : [],
      );
    return this.refuse(
      unit === "" ? `every ${count} of what is not said` : `every ${count} ${unit} is not understood`,
      ["every 15 minutes", "every 2 hours"],
    );
  }
}
