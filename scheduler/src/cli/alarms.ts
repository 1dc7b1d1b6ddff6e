import { ruleWords } from "../alarms.ts";
import { CarillonError } from "../errors.ts";
import { yamlDocuments } from "../yaml-documents.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { textOfFile } from "./read-tasks.ts";
import { type CommonOptions, withStore } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { ageText } from "./times.ts";

const messagesShown = 10;

/** What is wrong now, and the last messages: sent, waiting, or given up. */
export function listAlarms(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs, place }) => {
    const [open, messages] = [await store.alarms.open(), await store.alarms.outbox(messagesShown)];
    const now = nowMs();
    const iso = (ms: number) => new Date(ms).toISOString();
    if (terminal.json) {
      terminal.object({
        open: open.map(({ openedMs, lastMs, runId, ...rest }) => ({
          ...rest,
          run: runId,
          opened: iso(openedMs),
          last: iso(lastMs),
        })),
        messages: messages.map(({ createdMs, sentMs, ...rest }) => ({
          ...rest,
          created: iso(createdMs),
          sent: sentMs === null ? null : iso(sentMs),
        })),
      });
      return exitCodes.ok;
    }
    if (open.length === 0) terminal.line(`no alarm is open in ${place}`);
    terminal.table(
      [
        { title: "ALARM" },
        { title: "TASK", least: 12 },
        { title: "TIMES", align: "right" },
        { title: "SINCE" },
        { title: "LAST" },
        { title: "", least: 16 },
      ],
      open.map(({ rule, subject, count, openedMs, lastMs, text }) => [
        { text: ruleWords[rule] ?? plain(rule), paint: terminal.style.bad },
        ...[
          plain(subject),
          count === 0 ? "" : String(count),
          ageText(openedMs, now),
          ageText(lastMs, now),
          plain(text),
        ],
      ]),
    );
    if (messages.length === 0) return exitCodes.ok;
    terminal.line();
    terminal.table(
      [
        { title: "MESSAGE", align: "right" },
        { title: "CHANNEL" },
        { title: "ALARM" },
        { title: "" },
        { title: "WRITTEN" },
        { title: "SENT", least: 16 },
      ],
      messages.map(({ id, channel, rule, kind, createdMs, sentMs, error, attempts }) => [
        ...[String(id), plain(channel), plain(rule), plain(kind), ageText(createdMs, now)],
        sentMs === null
          ? plain(`not yet, after ${attempts} tries${error === null ? "" : `: ${error}`}`)
          : ageText(sentMs, now),
      ]),
    );
    return exitCodes.ok;
  });
}

/**
 * Options of a node from a YAML file; a text "env:NAME" stands for that variable, so that secrets stay out of it.
 * @param page where their shape is told
 */
export function readOptionFile<Options>(file: string, page: string): Options {
  const [read] = yamlDocuments(textOfFile(file, `Give the path of a YAML file; see ${page}.`));
  if (read && "problem" in read)
    throw new CarillonError("FILE_INVALID", `${file} is not YAML: ${read.problem}`, { hint: `See ${page}.` });
  return fromEnvironment(read?.content) as Options;
}

function fromEnvironment(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(fromEnvironment);
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fromEnvironment(one)]));
  const [, name] = typeof value === "string" ? (/^env:([A-Za-z_]\w*)$/.exec(value) ?? []) : [];
  if (name === undefined) return value;
  const found = process.env[name];
  if (found) return found;
  throw new CarillonError("OPTION_INVALID", `the variable ${name}, which a file of options names, is not set`, {
    hint: `Set ${name}.`,
  });
}
