import { consumerObject, isoTime } from "../../api/run-json.ts";
import type { ConsumerRecord } from "../../store/event-store.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { withCluster } from "../reach.ts";
import { timeOf } from "../runs/operations.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

interface RedeliverOptions extends CommonOptions {
  since?: string;
  reason?: string;
}

function failingText({ failing }: ConsumerRecord): string {
  if (failing === null) return "";
  const of = failing.runId === 0 ? "" : ` of run ${failing.runId}`;
  const time = failing.eventMs === undefined ? "" : ` at ${isoTime(failing.eventMs)}`;
  return plain(`${failing.type}${of}${time}, attempt ${failing.attempt}: ${failing.error}`);
}

export function listConsumers(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const consumers = await cluster.events.list();
    const now = cluster.nowMs();
    if (terminal.json) terminal.object(consumers.map(consumerObject));
    else if (consumers.length === 0)
      terminal.aside("There are no named consumers of events. See docs/tasks/webhooks.md.");
    else
      terminal.table(
        [{ title: "CONSUMER", least: 8 }, { title: "HANDLED UP TO" }, { title: "FAILING", least: 8 }],
        consumers.map((consumer) => [
          plain(consumer.name),
          consumer.placeMs === null ? "" : ageText(consumer.placeMs, now),
          failingText(consumer),
        ]),
      );
    return exitCodes.ok;
  });
}

export function redeliver(name: string, options: RedeliverOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const { since, reason = "" } = options;
    const sinceMs = since === undefined ? null : timeOf("--since", since, cluster.nowMs());
    const consumer = await cluster.events.redeliver(name, sinceMs, reason);
    if (terminal.json) terminal.object(consumerObject(consumer));
    else {
      const from = sinceMs === null ? "the first event that it has not handled" : isoTime(sinceMs);
      terminal.line(`${plain(name)} gets events again from ${from} on, within a minute`);
    }
    return exitCodes.ok;
  });
}
