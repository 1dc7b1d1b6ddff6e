/**
 * Applies changed configuration to a running process without a restart. Either all changeable options are applied, or, after an error,
 * none. See docs/operate/stopping.md.
 */
import type { OwnSecrets } from "../access/secrets/own-secrets.ts";
import { readSecretKeys } from "../access/secrets/read-keys.ts";
import type { Clock } from "../base/clock.ts";
import { sortedJson } from "../base/json.ts";
import { channelsOf } from "../engine/alarms/channels.ts";
import type { Alarms } from "../engine/alarms/watch.ts";
import { checkWebhooks } from "../executors/http/notice.ts";
import { type CarillonOptions, type Settings, settingsOf } from "../settings/settings.ts";
import { alarmSenders } from "./alarms/senders.ts";
import type { Exchanged } from "./exchanged.ts";
import type { Handlers } from "./handlers.ts";

interface Running {
  settings: Settings;
  options: CarillonOptions;
  secrets: OwnSecrets;
  handlers: Handlers;
  alarms: Alarms | undefined;
  clock: Clock;
}

const places = ["store", "listenUrl", "directory", "coordination"] as const;
/** The options that `exchange` can apply; each has its own code below. */
const exchanged = ["commands", "httpTasks", "alarms"] as const;

/**
 * @throws OPTION_INVALID, FILE_INVALID, SECRET_KEY_OPEN and other errors that a start with these options would throw; nothing is changed
 * then
 */
export async function exchange(running: Running, options: CarillonOptions): Promise<Exchanged> {
  const { settings, secrets, handlers, alarms, clock } = running;
  const next = settingsOf(options);
  checkWebhooks(next.alarms?.channels ?? {}, next.alarms?.ping);
  const keys = readSecretKeys(options.secretKeys);
  const callHttp = handlers.httpOf(next.httpTasks);
  const channels = next.alarms && (await channelsOf(next.alarms, alarmSenders, clock));
  const differs = (name: keyof Settings) => sortedJson(settings[name]) !== sortedJson(next[name]);
  const names = (Object.keys(next) as (keyof Settings)[]).filter(differs);
  const found: Exchanged = {
    changed: [],
    restart: [
      ...places.filter((name) => running.options[name] !== options[name]),
      ...names.filter((name) => !exchanged.some((one) => one === name)),
    ],
  };
  const change = (option: string, count: number) => found.changed.push({ option, count });
  if (names.includes("commands")) {
    for (const name of ["allow", "allowEnv"] as const)
      if (sortedJson(settings.commands[name]) !== sortedJson(next.commands[name]))
        change(`commands.${name}`, next.commands[name].length);
    for (const name of ["shell", "rehearse"] as const)
      if (settings.commands[name] !== next.commands[name]) change(`commands.${name}`, Number(next.commands[name]));
    Object.assign(settings.commands, next.commands);
  }
  if (names.includes("httpTasks")) {
    change("httpTasks", next.httpTasks.allow?.length ?? 0);
    settings.httpTasks = next.httpTasks;
    handlers.callHttpBy(callHttp);
  }
  if (names.includes("alarms")) {
    // Alarms are exchanged only if the process was started with the option `alarms` and still has it. Adding or removing the option
    // needs a restart.
    if (alarms && settings.alarms && next.alarms && channels) {
      change("alarms", Object.keys(channels).length);
      Object.assign(settings.alarms, next.alarms);
      alarms.tellBy(channels);
    } else found.restart.push("alarms");
  }
  if (!secrets.keys.equals(keys)) {
    change("secretKeys", keys.count);
    secrets.keys.exchange(keys);
  }
  return found;
}
