import fc from "fast-check";
import { EventReader, eventText } from "../../../scheduler/src/api/event-reader.ts";
import { messageOf } from "../../../scheduler/src/base/errors.ts";
import { type Json, jsonText, sortedJson } from "../../../scheduler/src/base/json.ts";
import { cut, plain, plainLines, widthOf, wrap } from "../../../scheduler/src/cli/screen/text.ts";
import {
  fingerprintOf,
  fingerprintOfText,
  normalised,
  reasonOf,
} from "../../../scheduler/src/run/error-fingerprint.ts";
import { holidaysOfIcs } from "../../../scheduler/src/schedule/ics/ics.ts";
import { expect, hold, same } from "../expected.ts";
import { oddJson, oddValues, spoiltTexts, spoiltValues } from "../mutation.ts";
import { target } from "../target.ts";

const messages = [
  'connect ECONNREFUSED 127.0.0.1:5432 after 15 tries of "ledger-7"',
  "Cannot read properties of undefined (reading 'x') at run 42, 9f86d081884c7d65",
  "key (id)=(123e4567-e89b-12d3-a456-426614174000) already exists, «more» `code` “quoted”",
];
const errors = [
  ...messages.map((message) => ({ message, code: "E_X", stack: "Error: x\n  at y" })),
  { message: 5 },
  { code: 5 },
  "text",
  7,
  null,
  [1, "a"],
];

const calendars = [
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    "PRODID:x",
    "BEGIN:VEVENT",
    "UID:1",
    "SUMMARY:New Year",
    "DTSTART;VALUE=DATE:20260101",
    "DTEND;VALUE=DATE:20260102",
    "RRULE:FREQ=YEARLY;COUNT=20",
    "END:VEVENT",
    "BEGIN:VEVENT",
    "UID:2",
    "DTSTART;VALUE=DATE:20260403",
    "RDATE;VALUE=DATE:20270326,20280414",
    "EXDATE;VALUE=DATE:20270326",
    "END:VEVENT",
    "END:VCALENDAR",
  ],
  [
    "BEGIN:VCALENDAR",
    "BEGIN:VTIMEZONE",
    "TZID:X",
    "BEGIN:STANDARD",
    "DTSTART:19701025T030000",
    "TZOFFSETFROM:+0200",
    "TZOFFSETTO:+0100",
    "END:STANDARD",
    "END:VTIMEZONE",
    "BEGIN:VEVENT",
    "UID:3",
    "DTSTART;TZID=X:20260501T100000",
    "DURATION:P2DT3H",
    "RRULE:FREQ=MONTHLY;BYDAY=-1MO;UNTIL=20280101T000000Z;INTERVAL=2",
    "END:VEVENT",
    "BEGIN:VEVENT",
    "UID:3",
    "RECURRENCE-ID:20260501T100000",
    "DTSTART:20260502T100000Z",
    "STATUS:CANCELLED",
    "END:VEVENT",
    "END:VCALENDAR",
  ],
].map((lines) => `${lines.join("\r\n")}\r\n`);
const calendarWords = [
  "BEGIN:VEVENT\r\n",
  "END:VEVENT\r\n",
  "RRULE:",
  "FREQ=DAILY",
  ";INTERVAL=",
  ";BYDAY=1MO,-1SU",
  ";BYMONTHDAY=30,-31",
  ";BYMONTH=2",
  ";COUNT=",
  ";UNTIL=20300101",
  ";BYSETPOS=-1",
  ";BYYEARDAY=366",
  ";BYWEEKNO=53",
  ";WKST=SU",
  ";BYHOUR=25",
  "FREQ=SECONDLY",
  "EXRULE:",
  "RDATE;VALUE=PERIOD:",
  "DURATION:-P1D",
  "DURATION:P99999W",
  "DTSTART:",
  "VALUE=DATE:",
  "TZID=Mars/Olympus",
  "20260230",
  "00000000",
  "99991231T235959Z",
  "\r\n ",
  ';X="',
];
const window = { fromDay: 20_000, toDay: 24_000, zone: "Europe/Berlin" };

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what a terminal acts on.
const acting = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\u2028\u2029]/;

export const valueTargets = [
  target({
    name: "fingerprints",
    share: 1,
    inputs: fc.oneof(
      spoiltValues(errors, oddJson, ["message", "code"]),
      spoiltTexts(messages, ["'", '"', "`", "«", "»", "#", "0x1f", "abcdefabcdef", "a1-b2_c3", "\n"], 12).map(
        (message) => ({ message }),
      ),
    ),
    feed: (given) => {
      const error = JSON.parse(JSON.stringify(given) ?? "null") as unknown;
      const print = fingerprintOf(error as Json);
      hold(/^[0-9a-f]{12}$/.test(print), () => `the fingerprint is ${print}`);
      const text = JSON.stringify(error);
      if (text !== undefined) same(fingerprintOfText(text), print, "of the text of a verdict it is another");
      hold(reasonOf(error as Json).words.length <= 2_000, () => "its words are longer than a message");
    },
    grown: { corpus: messages, most: 100_000, feed: (text) => void normalised(text) },
  }),
  target({
    name: "payloads",
    share: 2,
    inputs: fc.oneof(
      oddValues,
      fc.anything({ withBigInt: true, withDate: true, withMap: true, withSet: true, withNullPrototype: true }),
    ),
    feed: (value) => {
      messageOf(value);
      const text = expect(() => jsonText(value, "it"))?.value;
      if (text === undefined || text === null) return;
      const read = JSON.parse(text) as unknown;
      same(jsonText(read, "it"), text, "written again, it is another");
      same(JSON.parse(sortedJson(read)), read, "sorted, it is another");
    },
  }),
  target({
    name: "calendars",
    share: 2,
    inputs: spoiltTexts(calendars, calendarWords),
    feed: (text) => {
      const days = expect(() => holidaysOfIcs(text, window))?.value;
      if (!days) return;
      hold(
        days.length <= window.toDay - window.fromDay + 1,
        () => `${days.length} days in ${window.toDay - window.fromDay}`,
      );
      same([...new Set(days)].sort(), days, "the days are not in order");
    },
    grown: { corpus: calendars, most: 64_000, feed: (text) => void expect(() => holidaysOfIcs(text, window)) },
  }),
  target({
    name: "terminal-text",
    share: 1,
    inputs: fc.record({
      text: fc.oneof(
        spoiltTexts([...messages, "\x1b[31mred\x1b[0m 漢字 é 👩‍👩‍👧", "a\tb\r\nc"], ["\x1b]0;x\x07", "\x9b2J"]),
        fc.string({ unit: "binary" }),
      ),
      width: fc.integer({ min: 1, max: 40 }),
    }),
    feed: ({ text, width }) => {
      const shown = plain(text);
      hold(!acting.test(shown), () => `${JSON.stringify(shown)} has something in it that a terminal acts on`);
      for (const line of plainLines(text)) hold(!acting.test(line), () => JSON.stringify(line));
      hold(widthOf(cut(shown, width)) <= width, () => `cut to ${width}, it is ${widthOf(cut(shown, width))} wide`);
      if (width > 1)
        for (const line of wrap(shown, width))
          hold(widthOf(line) <= width, () => `${JSON.stringify(line)} is wider than ${width}`);
    },
    grown: {
      corpus: messages,
      most: 60_000,
      feed: (text) => {
        wrap(plain(text), 80);
        cut(text, 80);
      },
    },
  }),
  target({
    name: "events",
    share: 1,
    inputs: fc.record({
      values: fc.array(oddJson, { maxLength: 4 }),
      noise: fc.string({ maxLength: 20 }),
      size: fc.integer({ min: 1, max: 50 }),
    }),
    feed: ({ values, noise, size }) => {
      const sent = values.map((value, at) => eventText(value, String(at))).join("");
      const bounded = sent.slice(0, 5_000);
      new EventReader().read(noise + bounded);
      if (bounded.length < sent.length) return;
      const reader = new EventReader();
      const read: unknown[] = [];
      for (let at = 0; at < sent.length; at += size)
        for (const data of reader.read(sent.slice(at, at + size))) read.push(JSON.parse(data));
      same(read, JSON.parse(JSON.stringify(values)), "sent in pieces, the events are others");
    },
  }),
];
