/**
 * Plays random edits of a task, its calendar and the rules of its zone in virtual time, and afterwards checks what the ledger has about
 * each slot.
 */
import type { Random } from "../../src/base/random.ts";
import type { Call } from "../../src/http/call.ts";
import { slotCalls } from "../../src/http/calls/slot-calls.ts";
import type { ClaimedRun } from "../../src/run/claim-store.ts";
import { compileSchedule, cron, every, type ScheduleSpec } from "../../src/schedule/schedule.ts";
import type { BlackoutOptions, CalendarOptions } from "../../src/schedule/slot-rules.ts";
import { zoneOf } from "../../src/schedule/zone.ts";
import { change, dayMs, type Stage, settlement, succeededVerdict } from "./store-stage.ts";
import { plantRules } from "./zone-data.ts";

const hourMs = 3_600_000;
const horizonMs = 15_000;
const claimAheadMs = 1_000;

const schedules: readonly ScheduleSpec[] = [
  cron("0 9 * * *"),
  cron("0 9,17 * * *"),
  cron("30 */6 * * *"),
  cron("0 9 * * fri,sat,mon"),
  cron("0 9,17 * * *", { zone: "America/New_York" }),
  every("7h"),
];
const windows: readonly BlackoutOptions[][] = [
  [],
  // biome-ignore lint/suspicious/noThenProperty: an option's name.
  [{ from: "08:00", to: "10:00", then: "delay" }],
  [{ from: "16:30", to: "18:00" }],
  // biome-ignore lint/suspicious/noThenProperty: an option's name.
  [{ from: "22:00", to: "06:00", days: ["fri", "sun"], then: "delay" }],
];
/** Sets of hours of the day for schedules. The hours are so far apart that changed zone rules cannot turn one into another. */
const hoursOfDay = [[9], [9, 17], [1, 9, 17]];
/** Differences in ms between a zone's changed rules and its own rules. */
const shiftsMs = [-2, -1, -0.5, 0, 0.5, 1, 2].map((hours) => hours * hourMs);
const moves = ["skip", "next", "next", "previous", "previous"] as const;
/**
 * Times in ms, relative to a slot, at which an edit is made: the slot is then not planned yet, planned, claimed ahead, due, or its run is
 * under way.
 */
const aroundMs = [-20_000, -10_000, -500, -500, 0, 5_000];

const editedDays = 9;
/** The maximum number of days of a sequence, for which the history needs partitions. */
export const sequenceDays = editedDays + 9;

export interface Named {
  /** The name of the task, of its calendar and of its group. */
  name: string;
  session: number;
  worker: number;
  beginMs: number;
  /** A zone with the same offset all year whose rules the sequence changes. If absent, the sequence changes the schedule instead. */
  zone?: string;
}

/** Plays one sequence: chooses random edits, carries them out, and at the end processes all remaining days. */
export class EditSequence {
  readonly #stage: Stage;
  readonly #random: Random;
  readonly #named: Named;
  #nowMs: number;
  #schedule: ScheduleSpec = schedules[0] as ScheduleSpec;
  #otherwise: CalendarOptions["otherwise"] = "next";
  #hasCalendar = true;
  #blackout: BlackoutOptions[] = [];
  #holidays = new Set<string>();
  #running: { run: ClaimedRun; untilMs: number }[] = [];
  /** The hours of the day of the first schedule, if the sequence changes the zone's rules; otherwise nothing uses them. */
  hours: readonly number[] = [];
  /** Each action with its time, for the message of a failed test. */
  readonly story: string[] = [];

  constructor(stage: Stage, random: Random, named: Named) {
    this.#stage = stage;
    this.#random = random;
    this.#named = named;
    this.#nowMs = named.beginMs;
  }

  /** Plays the sequence. @returns the time in ms until which every slot must be accounted for */
  async play(): Promise<number> {
    const { zone } = this.#named;
    this.hours = this.#one(hoursOfDay);
    this.#schedule = zone === undefined ? this.#one(schedules) : cron(`0 ${this.hours} * * *`, { zone });
    this.#otherwise = this.#one(moves);
    await this.#setCalendar();
    await this.#save();
    const steps = 6 + this.#below(14);
    for (let step = 0; step < steps && this.#nowMs < this.#named.beginMs + editedDays * dayMs; step++) {
      await this.#pass();
      await this.#edit();
    }
    await this.#stage.store.tasks.resume(this.#named.name, change(this.#nowMs));
    this.#holidays.clear();
    this.#blackout = [];
    await this.#setCalendar();
    await this.#save();
    await this.#until(this.#nowMs + 2 * dayMs, false);
    this.#tell("end");
    return this.#nowMs;
  }

  #below(count: number): number {
    return Math.floor(this.#random.next() * count);
  }

  #one<Value>(values: readonly Value[]): Value {
    return values[this.#below(values.length)] as Value;
  }

  #tell(what: string): void {
    this.story.push(`${new Date(this.#nowMs).toISOString()} ${what}`);
  }

  async #save(): Promise<void> {
    const { name } = this.#named;
    const calendar = this.#hasCalendar ? { name, otherwise: this.#otherwise ?? "skip" } : null;
    const options = {
      schedule: this.#schedule,
      calendar,
      blackout: this.#blackout,
      group: name,
      overlap: "allow" as const,
    };
    await this.#stage.task(name, options, this.#nowMs);
  }

  async #setCalendar(): Promise<void> {
    const content = { zone: this.#named.zone ?? "Europe/Berlin", weekend: [], holidays: [...this.#holidays] };
    await this.#stage.store.calendars.set(this.#named.name, content, change(this.#nowMs));
  }

  async #edit(): Promise<void> {
    const { tasks } = this.#stage.store;
    const { name, zone } = this.#named;
    if (zone !== undefined && this.#below(2) === 0) {
      const shiftMs = this.#one(shiftsMs);
      this.#tell(`rules of ${shiftMs / hourMs} h`);
      await plantRules(this.#stage, zone, shiftMs, this.#nowMs);
      await tasks.followZones(change(this.#nowMs));
      return;
    }
    const kind = this.#below(10);
    if (kind < 5) {
      // Mostly a day near the present becomes a holiday, or a holiday becomes a working day again.
      for (let days = 1 + this.#below(2); days > 0; days--) {
        const day = new Date(this.#nowMs + this.#one([-1, 0, 0, 1, 2, 3]) * dayMs).toISOString().slice(0, 10);
        if (!this.#holidays.delete(day)) this.#holidays.add(day);
      }
      this.#tell(`holidays ${[...this.#holidays].join(" ")}`);
      await this.#setCalendar();
    } else if (kind === 5) {
      this.#otherwise = this.#one(moves);
      this.#hasCalendar = this.#below(4) > 0;
      this.#tell(this.#hasCalendar ? `otherwise ${this.#otherwise}` : "no calendar");
      await this.#save();
    } else if (kind === 6 && zone === undefined) {
      this.#schedule = this.#one(schedules);
      this.#tell(`schedule ${JSON.stringify(this.#schedule)}`);
      await this.#save();
    } else if (kind === 7) {
      this.#blackout = this.#one(windows);
      this.#tell(`blackout ${JSON.stringify(this.#blackout)}`);
      await this.#save();
    } else if (kind === 8) {
      this.#tell("pause");
      await tasks.pause(name, change(this.#nowMs));
    } else {
      this.#tell("resume");
      await tasks.resume(name, change(this.#nowMs));
    }
  }

  /** Advances time, mostly to a moment near a slot, and sometimes without a planner in between. */
  async #pass(): Promise<void> {
    const { nextSlotMs } = await this.#record();
    const plannerHalts = this.#below(6) === 0;
    if (this.#below(3) > 0 && nextSlotMs !== null) {
      await this.#until(nextSlotMs + this.#one(aroundMs), plannerHalts);
      return;
    }
    await this.#until(this.#nowMs + Math.round(this.#random.next() * 24 * hourMs), plannerHalts);
  }

  async #until(toMs: number, plannerHalts: boolean): Promise<void> {
    while (!plannerHalts) {
      const { nextSlotMs } = await this.#record();
      if (nextSlotMs === null || nextSlotMs - horizonMs > toMs) break;
      this.#nowMs = Math.max(this.#nowMs, nextSlotMs - horizonMs);
      await this.#stage.plan([await this.#record()], this.#named.session, this.#nowMs + horizonMs, this.#nowMs);
      const claimsMs = nextSlotMs - claimAheadMs;
      if (claimsMs > toMs) break;
      await this.#work(Math.max(this.#nowMs, claimsMs));
      if (nextSlotMs <= toMs) await this.#work(Math.max(this.#nowMs, nextSlotMs));
    }
    if (toMs > this.#nowMs) await this.#work(toMs);
    if (plannerHalts) this.#tell("the planner has halted until now");
  }

  /** Claims the runs that are due within a second, and ends those started runs whose time is over. */
  async #work(nowMs: number): Promise<void> {
    const { claims } = this.#stage.store;
    const { worker } = this.#named;
    this.#nowMs = nowMs;
    const { groupId } = await this.#record();
    const wanted = { sessionId: worker, groupIds: [groupId], exceptTaskIds: [], limit: 100 };
    const { runs } = await claims.claim({ ...wanted, untilMs: nowMs + claimAheadMs, nowMs });
    for (const run of runs) this.#running.push({ run, untilMs: run.dueMs + this.#one([1_000, 60_000, 20 * hourMs]) });
    const ended = this.#running.filter(({ untilMs }) => untilMs <= nowMs);
    this.#running = this.#running.filter(({ untilMs }) => untilMs > nowMs);
    if (ended.length > 0)
      await claims.settle(
        worker,
        ended.map(({ run, untilMs }) => settlement(run, succeededVerdict, untilMs)),
        nowMs,
      );
  }

  async #record() {
    return this.#stage.store.tasks.byName(this.#named.name);
  }
}

/**
 * Returns the violations: slots of the schedule in force that the ledger does not account for, slots with several accounts or
 * runs, and ranges that give a wrong number of slots. Reads the ledger through the API's call.
 */
export async function notToldOnce(stage: Stage, { name, beginMs }: Named, endMs: number): Promise<string[]> {
  const { tasks, runs } = stage.store;
  const api = slotCalls(stage.store);
  const { items, ranges } = await api.listSlots({ task: name, limit: 1_000 }, { nowMs: endMs } as Call);
  const versions = (await tasks.versions(name)).sort((a, b) => a.version - b.version);
  const accounts = new Map<number, string[]>();
  const account = (ms: number, what: string) => accounts.set(ms, [...(accounts.get(ms) ?? []), what]);
  for (const { slot, nominal, outcome, reason } of items)
    for (const time of nominal ?? [slot]) account(Date.parse(time), `${outcome} at ${slot} (${reason})`);
  for (const { from, to, version, slots, outcome, reason } of ranges) {
    const spec = versions.find((one) => one.version === version)?.definition.schedule as ScheduleSpec;
    // A slot with its own row is not counted in a range.
    const times = timesOf(spec, Date.parse(from) - 1, Date.parse(to)).filter((time) => !accounts.has(time));
    for (const time of times) account(time, `${outcome} from ${from} to ${to} (${reason})`);
    if (slots !== null && slots !== times.length)
      account(Number.NaN, `${from} to ${to} has ${times.length}, says ${slots}`);
  }
  const wrong: string[] = [...(accounts.get(Number.NaN) ?? [])];
  const wanted = new Set<number>();
  for (const [place, { definition, changedMs }] of versions.entries())
    for (const time of timesOf(
      definition.schedule,
      Math.max(changedMs, beginMs),
      versions[place + 1]?.changedMs ?? endMs,
    ))
      wanted.add(time);
  for (const time of wanted) if (!accounts.has(time)) wrong.push(`${new Date(time).toISOString()} has no account`);
  for (const [time, told] of accounts)
    if (told.length > 1 && !Number.isNaN(time)) wrong.push(`${new Date(time).toISOString()}: ${told.join("; ")}`);
  const ran = (await runs.list({ task: name, limit: 1_000 })).map(({ slotMs }) => slotMs);
  if (new Set(ran).size !== ran.length) wrong.push("a slot has two runs");
  return wrong;
}

/** The largest distance in ms between the instants of a local time under the changed rules and under the zone's own rules. */
const nearMs = 3 * hourMs;

/**
 * For a sequence that changed its zone's rules: returns the local times that are not accounted for exactly once. A local time is
 * identified by its instant under the zone's own rules. Ledger rows within `nearMs` of that instant account for it; if there are
 * none, ranges do that contain the instant or begin or end within `nearMs` of it.
 */
export async function localTimesNotToldOnce(
  stage: Stage,
  { name, beginMs, zone = "UTC" }: Named,
  hours: readonly number[],
  endMs: number,
): Promise<string[]> {
  const { items, ranges } = await slotCalls(stage.store).listSlots({ task: name, limit: 1_000 }, {
    nowMs: endMs,
  } as Call);
  const { offset } = zoneOf(zone).at(beginMs);
  const wrong: string[] = [];
  for (
    let midnightMs = Math.floor((beginMs + offset) / dayMs) * dayMs;
    midnightMs < endMs + offset;
    midnightMs += dayMs
  )
    for (const hour of hours) {
      const localMs = midnightMs + hour * hourMs;
      const atMs = localMs - offset;
      if (atMs < beginMs + nearMs || atMs > endMs - nearMs) continue;
      const isNear = (time: string) => Math.abs(Date.parse(time) - atMs) <= nearMs;
      const rows = items.flatMap(({ slot, nominal, outcome, reason }) =>
        (nominal ?? [slot]).filter(isNear).map((time) => `${outcome} at ${slot} for ${time} (${reason})`),
      );
      const told = ranges
        .filter(({ from, to }) => isNear(from) || isNear(to) || (Date.parse(from) < atMs && atMs < Date.parse(to)))
        .map(({ from, to, outcome, reason }) => `${outcome} from ${from} to ${to} (${reason})`);
      // A slot with its own row is not counted in a range.
      const accounts = rows.length > 0 ? rows : told;
      if (accounts.length !== 1) wrong.push(`${new Date(localMs).toISOString().slice(0, 16)}: ${accounts.join("; ")}`);
    }
  return wrong;
}

/** Returns the slots of a schedule after `afterMs` and up to `toMs`. */
function timesOf(spec: ScheduleSpec, afterMs: number, toMs: number): number[] {
  const schedule = compileSchedule(spec);
  const times: number[] = [];
  for (let at = schedule.next(afterMs); at !== null && at <= toMs; at = schedule.next(at)) times.push(at);
  return times;
}
