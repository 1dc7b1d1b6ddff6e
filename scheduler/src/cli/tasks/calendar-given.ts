/** Reads the days of a calendar from the command's files and options. */
import { readFile } from "node:fs/promises";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { type CalendarContent, weekdayOf } from "../../schedule/calendar.ts";
import { type IcsNotice, type IcsWindow, icsWindow, readIcs } from "../../schedule/ics/ics.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface GivenOptions extends CommonOptions {
  ics?: string[];
  strict?: boolean;
  days?: string;
  weekend?: string;
  zone?: string;
  years: number;
}

interface GivenFile {
  path: string;
  text: string;
}

export interface GivenContent {
  content: CalendarContent;
  /** Names of the holidays in the files; the key is the date. */
  names: Map<string, string>;
  /** Remarks of the parser about the files; null if no file was given. */
  notices: (IcsNotice & { file: string })[] | null;
}

const weekdayNames = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const words = (text: string) => text.split(",").flatMap((word) => (word.trim() === "" ? [] : [word.trim()]));

export const weekendText = (weekend: readonly number[]): string =>
  weekend.length === 0 ? "no weekend" : `weekend ${weekend.map((day) => weekdayNames[day]).join(", ")}`;

/** Reads the files as UTF-8. @throws FILE_INVALID if one cannot be read, CALENDAR_INVALID if one is too large */
export const readFiles = (paths: readonly string[] = []): Promise<GivenFile[]> =>
  Promise.all(paths.map(async (path) => ({ path, text: await textOf(path) })));

/**
 * Combines files and options into the content of a calendar.
 * @param preset the zone and weekend if the options do not give them
 * @throws CALENDAR_INVALID
 */
export function givenContent(
  files: readonly GivenFile[],
  options: GivenOptions,
  preset: Pick<CalendarContent, "zone" | "weekend">,
  nowMs: number,
): GivenContent {
  const zone = options.zone ?? preset.zone;
  const window = icsWindow(nowMs, zone, options.years);
  const read = files.map((file) => ({ file: file.path, ...readFileOf(file, window, options.strict) }));
  return {
    content: {
      zone,
      weekend: options.weekend === undefined ? preset.weekend : words(options.weekend).map(weekdayOf),
      holidays: [...words(options.days ?? ""), ...read.flatMap(({ days }) => days)],
    },
    names: new Map(read.flatMap(({ names }) => [...names])),
    notices:
      files.length === 0 ? null : read.flatMap(({ file, notices }) => notices.map((notice) => ({ file, ...notice }))),
  };
}

export function tellNotices({ notices }: GivenContent, terminal: Terminal): void {
  for (const { file, line, message } of notices ?? []) terminal.aside(`${plain(file)}:${line}: ${plain(message)}`);
}

export const noticesObject = ({ notices }: GivenContent) => (notices === null ? {} : { notices });

/** Parses an iCalendar file; an error's message gets the file's path as prefix. */
function readFileOf({ path, text }: GivenFile, window: IcsWindow, isStrict?: boolean) {
  try {
    return readIcs(text, window, isStrict);
  } catch (cause) {
    if (!(cause instanceof CarillonError)) throw cause;
    throw new CarillonError(cause.code, `${path}: ${cause.message}`, { hint: cause.hint, cause });
  }
}

async function textOf(path: string): Promise<string> {
  try {
    const bytes = await readFile(path);
    if (bytes.length <= limits.icsBytes) return bytes.toString("utf8");
  } catch (cause) {
    throw new CarillonError("FILE_INVALID", `cannot read ${path}: ${messageOf(cause)}`, { cause });
  }
  throw new CarillonError("CALENDAR_INVALID", `${path} is larger than ${limits.icsBytes} bytes`, {
    hint: "Leave out what is long past.",
  });
}
