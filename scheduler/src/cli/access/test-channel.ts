import { testMessage } from "../../alarms/alarms.ts";
import { systemClock } from "../../base/clock.ts";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { meant } from "../../base/nearest.ts";
import { channelsOf } from "../../engine/alarms/channels.ts";
import { noticeOptions } from "../../engine/alarms/notices.ts";
import { previewOf, sampleMessage } from "../../engine/alarms/preview.ts";
import { checkWebhooks } from "../../executors/http/notice.ts";
import { alarmSenders } from "../../library/alarms/senders.ts";
import { type AlarmOptions, type AlarmSettings, alarmSettings } from "../../settings/alarms/alarms.ts";
import type { ChannelOptions } from "../../settings/alarms/channels.ts";
import { optionsBeneath } from "../config/config-settings.ts";
import { readOptionFile } from "../config/option-file.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { operator } from "../operator.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import type { CommonOptions } from "../store-choice.ts";

export interface TestOptions extends CommonOptions {
  /** Path of the file with the alarm settings; default: the `alarms` of this machine's configuration. */
  alarms?: string;
  /** True: print the message that a failure would cause, and send nothing. */
  preview?: boolean;
}

/** The longest time in ms that a service may take to accept the message; the same as for real alarms. */
const patienceMs = 40_000;

/** Sends a test message from this process, or prints a sample message. Needs neither a store nor a server. */
export async function testChannel(name: string, options: TestOptions, terminal: Terminal): Promise<ExitCode> {
  const settings = settingsGiven(options, terminal);
  const channel = channelIn(settings, name);
  checkWebhooks(settings.channels);
  if (options.preview) return preview(name, channel, settings, terminal);
  const channels = await channelsOf(settings, alarmSenders, systemClock);
  const nowMs = systemClock.wall();
  const id = `carillon-alarm-test-${Math.round(nowMs).toString(36)}`;
  try {
    await channels[name]?.(id, testMessage(operator(), nowMs), AbortSignal.timeout(patienceMs));
  } catch (error) {
    if (!isCarillonError(error) && !(error instanceof DOMException)) throw error;
    if (terminal.json) terminal.object({ channel: name, sent: false, error: messageOf(error) });
    else terminal.line(`${plain(name)} did not take the test: ${plain(messageOf(error))}`);
    return exitCodes.failed;
  }
  if (terminal.json) terminal.object({ channel: name, sent: true, error: null });
  else terminal.line(`${plain(name)} took the test`);
  return exitCodes.ok;
}

function preview(name: string, channel: ChannelOptions, settings: AlarmSettings, terminal: Terminal): ExitCode {
  const nowMs = systemClock.wall();
  const { kind, to, content } = previewOf(channel, sampleMessage(nowMs), noticeOptions(channel, settings), nowMs);
  if (terminal.json) terminal.object({ channel: name, kind, to, content });
  else {
    terminal.line(`${kind} to ${plain(to)}`);
    for (const line of content.split("\n")) terminal.line(plain(line));
  }
  return exitCodes.ok;
}

/** Reads the alarm settings from the file or the configuration. @throws OPTION_INVALID, FILE_INVALID, ZONE_UNKNOWN, DURATION_INVALID */
function settingsGiven(options: TestOptions, terminal: Terminal): AlarmSettings {
  const tell = (open: CarillonError) => terminal.failure(open);
  const read = (given: unknown, name: string) =>
    typeof given === "string" ? readOptionFile(name, given, tell) : given;
  const given =
    options.alarms === undefined
      ? optionsBeneath(options.file, process.env, (value, name) => (name === "alarms" ? read(value, name) : value))
          .alarms
      : readOptionFile<AlarmOptions>("alarms", options.alarms, tell);
  if (given) return alarmSettings(given);
  throw new CarillonError("OPTION_INVALID", "no channels are configured here", {
    hint: "Give --alarms FILE, or set `alarms` in the configuration: see docs/operate/channels.md.",
  });
}

/** Returns the channel with this name. @throws ALARM_UNKNOWN */
function channelIn({ channels }: AlarmSettings, name: string): ChannelOptions {
  const found = Object.hasOwn(channels, name) ? channels[name] : undefined;
  if (found) return found;
  const names = Object.keys(channels);
  throw new CarillonError("ALARM_UNKNOWN", `there is no channel ${JSON.stringify(name)}${meant(name, names)}`, {
    hint: `The channels are ${names.join(", ")}.`,
  });
}
