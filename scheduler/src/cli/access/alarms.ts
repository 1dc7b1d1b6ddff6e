import type { AlarmRecord, OutboxRow } from "../../alarms/alarm-store.ts";
import { wordsOfRule } from "../../alarms/alarms.ts";
import { iso, isoTime } from "../../api/run-json.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

const messagesShown = 10;
const openObject = ({ openedMs, lastMs, runId, seen, silencedUntilMs, ...rest }: AlarmRecord) => ({
  ...rest,
  run: runId,
  opened: isoTime(openedMs),
  last: isoTime(lastMs),
  silencedUntil: iso(silencedUntilMs),
  acknowledged: seen && { at: isoTime(seen.atMs), by: seen.by, why: seen.why },
});

/** Describes why the alarm sends no messages now: it was acknowledged or is silenced; "" if it sends messages. */
function quietText({ seen, silencedUntilMs }: AlarmRecord): string {
  if (seen) return `known to ${plain(seen.by)}${seen.why === "" ? "" : ` (${plain(seen.why)})`}; `;
  return silencedUntilMs === null ? "" : `silenced until ${isoTime(silencedUntilMs)}; `;
}

const messageObject = ({ createdMs, sentMs, ...rest }: OutboxRow) => ({
  ...rest,
  created: isoTime(createdMs),
  sent: iso(sentMs),
});

/** Lists the open alarms and the last messages: sent, waiting, or given up. */
export function listAlarms(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { open, messages } = await cluster.alarms.look(messagesShown);
    const now = cluster.nowMs();
    if (terminal.json) {
      terminal.object({ open: open.map(openObject), messages: messages.map(messageObject) });
      return exitCodes.ok;
    }
    if (open.length === 0) terminal.line(`no alarm is open in ${cluster.place}`);
    else
      terminal.table(
        [
          { title: "ALARM" },
          { title: "TASK", least: 12 },
          { title: "TIMES", align: "right" },
          { title: "SINCE" },
          { title: "LAST" },
          { title: "", least: 16 },
        ],
        open.map((alarm) => {
          const { rule, subject, count, openedMs, lastMs, text } = alarm;
          return [
            { text: plain(wordsOfRule(rule)), paint: terminal.style.bad },
            plain(subject),
            count === 0 ? "" : String(count),
            ageText(openedMs, now),
            ageText(lastMs, now),
            `${quietText(alarm)}${plain(text)}`,
          ];
        }),
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
        String(id),
        plain(channel),
        plain(rule),
        plain(kind),
        ageText(createdMs, now),
        sentMs === null
          ? plain(`not yet, after ${attempts} ${attempts === 1 ? "try" : "tries"}${error === null ? "" : `: ${error}`}`)
          : ageText(sentMs, now),
      ]),
    );
    return exitCodes.ok;
  });
}
