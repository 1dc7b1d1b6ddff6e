/** Writes iCalendar files (RFC 5545). */

/** An event without a duration, or of one whole day. */
export interface WrittenEvent {
  /** Unique in the world, and the same each time the event is written. */
  uid: string;
  startMs: number;
  /** True: the event takes the whole day (UTC) that begins at `startMs`. */
  isDay: boolean;
  summary: string;
  description: string;
}

export interface WrittenCalendar {
  name: string;
  stampMs: number;
  /** How often clients should read the calendar again, such as "PT1H". */
  refresh: string;
  /** Properties whose names begin with X-. */
  notes: Readonly<Record<string, number>>;
  events: readonly WrittenEvent[];
}

/** Returns the file's text. Clients do not show the events as busy time (TRANSP). */
export function writeIcs({ name, stampMs, refresh, notes, events }: WrittenCalendar): string {
  const stamp = utcText(stampMs);
  const lines = [
    ["BEGIN", "VCALENDAR"],
    ["VERSION", "2.0"],
    ["PRODID", "-//Carillon//Calendar feed//EN"],
    ["NAME", escaped(name)],
    ["X-WR-CALNAME", escaped(name)],
    ["REFRESH-INTERVAL;VALUE=DURATION", refresh],
    ["X-PUBLISHED-TTL", refresh],
    ...Object.entries(notes).map(([note, count]) => [note, String(count)]),
    ...events.flatMap(({ uid, startMs, isDay, summary, description }) => [
      ["BEGIN", "VEVENT"],
      ["UID", escaped(uid)],
      ["DTSTAMP", stamp],
      isDay ? ["DTSTART;VALUE=DATE", utcText(startMs).slice(0, 8)] : ["DTSTART", utcText(startMs)],
      ["SUMMARY", escaped(summary)],
      ...(description === "" ? [] : [["DESCRIPTION", escaped(description)]]),
      ["TRANSP", "TRANSPARENT"],
      ["END", "VEVENT"],
    ]),
    ["END", "VCALENDAR"],
  ];
  return lines.map(([property, value]) => `${folded(`${property}:${value}`)}\r\n`).join("");
}

/** Returns the time in the form 20301224T180000Z. */
const utcText = (ms: number): string => new Date(ms).toISOString().replace(/[-:]|\.\d+/g, "");

/** Writes a value of the type TEXT (section 3.3.11), which cannot contain control characters other than line breaks. */
const escaped = (text: string): string =>
  text
    .replace(/[\\;,]/g, "\\$&")
    .replace(/\r\n|\r|\n/g, "\\n")
    .replace(/\p{Cc}/gu, " ");

const lineBytes = 75;

/** Breaks a line into lines of at most 75 bytes, between characters; each further line begins with a space (section 3.1). */
function folded(line: string): string {
  let text = "";
  let bytes = 0;
  for (const character of line) {
    const length = Buffer.byteLength(character);
    if (bytes + length > lineBytes) {
      text += "\r\n ";
      bytes = 1;
    }
    text += character;
    bytes += length;
  }
  return text;
}
