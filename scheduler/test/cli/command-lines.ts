/**
 * A line or more for each command that asks a cluster, for the tests that carry out every command. The commands themselves, their
 * arguments and options come from the program: one that has no line here, or a line of a command that is gone, fails those tests.
 */
import type { Command, Option } from "commander";
import { commands } from "../../src/cli/program.ts";
import { Terminal } from "../../src/cli/screen/terminal.ts";

/** Commands that ask no cluster, or only the store: why no server can be asked in its place. */
export const ofNoServer: Readonly<Record<string, string>> = {
  dev: "it is a process of the cluster",
  server: "it is a process of the cluster",
  worker: "it is a process of the cluster",
  doctor: "it looks at the store itself, and says STORE_NEEDED with a server",
  migrate: "it changes the schema, and says STORE_NEEDED with a server",
  restored: "it is for the time before any server starts, and says STORE_NEEDED with one",
  "store dump": "it reads the store whole, and says STORE_NEEDED with a server",
  "store load": "it is for the time before any server starts, and says STORE_NEEDED with one",
  "clock adopt": "it is for a clock that servers do not trust, and says STORE_NEEDED with one",
  login: "it makes a token at a server",
  logout: "it ends a token at a server",
  profiles: "it reads a file of this machine",
  "profiles list": "it reads a file of this machine",
  "profiles use": "it writes a file of this machine",
  "config check": "it reads the settings of this machine",
  completion: "it prints a script",
  cron: "it reads words",
  "secrets key": "it draws a key",
};
const importsFiles = /^import (?!crontab$)/;

/** Options that are given in the lines alone, since another value of theirs does something to this machine or has no end. */
const notVaried = new Set(["--output", "--follow", "--wait"]);

/**
 * Of each command lines that are right, or wrong in a way of their own; the first is the one whose arguments and options are
 * varied. Words are separated by spaces, `~` stands for a space in a word. {good}, {bad}, {waiting} are runs, {operation} is an
 * operation, {silence} a silence, {fingerprint} is of the dead letters, {folder} is a folder with files.
 */
export const lines: Readonly<Record<string, readonly string[]>> = {
  "tasks list": [""],
  "tasks show": ["nightly", "order", "mail", "nobody", "no-such", "Order", "order/"],
  "tasks next": ["nightly", "nightly -n 3 --after 2030-03-30T00:00:00Z", "order", "mail", "no-such", "nightly -n 0"],
  "tasks run": [
    "nobody",
    'nobody --payload {"n":3}',
    "nobody --payload null",
    'nobody --payload "text"',
    "nobody --payload [1,2,{}]",
    "nobody --payload 1e400",
    "nobody --payload 12345678901234567890",
    "nobody --payload {'n':3}",
    'nobody --payload {"__proto__":{"x":1}}',
    'nobody --payload {"a":{"__proto__":1},"b":[{"__proto__":null}]}',
    'nobody --payload {"\\u005f_proto__":1}',
    'nobody --payload {"constructor":{"prototype":{"x":1}}}',
    'nobody --payload {"prototype":{},"toString":1,"hasOwnProperty":2}',
    'nobody --payload {"a":"\\u0000"}',
    'nobody --payload {"a\\u0000":1}',
    'nobody --payload ["\\ud800"]',
    `nobody --payload ${"[".repeat(201)}${"]".repeat(201)}`,
    `nobody --payload ${"[".repeat(250)}${"]".repeat(250)}`,
    `nobody --payload ${"[".repeat(5_000)}${"]".repeat(5_000)}`,
    `nobody --payload ["${"x".repeat(262_144)}"]`,
    `nobody --payload ["${"x".repeat(1_100_000)}"]`,
    "no-such",
    "nobody --timeout 1s",
    "nobody --wait --timeout 1ms",
    "nobody --wait --timeout never",
  ],
  "tasks pause": [
    "order --reason bank~is~closed",
    "order mail",
    "order order",
    "order no-such",
    "--matching ord*",
    "--group elsewhere --dry-run",
    "--matching zzz*",
    "--all --dry-run",
    "order --all",
    "",
  ],
  "tasks resume": [
    "order --reason bank~is~open",
    "order mail",
    "no-such order",
    "--matching ord*",
    "--group elsewhere --dry-run",
    "--matching zzz*",
    "--all --dry-run",
    "order --dry-run",
  ],
  "tasks edit": [
    "nightly --set timeout=2h",
    "nightly --set schedule=0~4~*~*~*",
    "nightly --set schedule=61~4~*~*~*",
    "nightly --set schedule=0~4~30~2~*",
    "nightly --set schedule=every~5m",
    "nightly --set schedule=every~1ms",
    "nightly --set schedule=rrule~FREQ=DAILY;BYHOUR=3",
    "nightly --set schedule=rrule~FREQ=NEVER",
    "nightly --set schedule=at~tomorrow",
    "nightly --set schedule=at~2300-01-01T00:00:00Z",
    'nightly --set schedule={"every":"1h"}',
    'nightly --set schedule={"type":"cron"}',
    "nightly --set schedule=manual",
    "nightly --set schedule=0~3~*~*~* --set zone=Europe/Berlin",
    "nightly --set zone=Mars/Olympus",
    "nightly --set zone=",
    "nightly --set timeout=never",
    "nightly --set timeout=",
    "nightly --set timeout=none",
    "nightly --set timeout=-5",
    "nightly --set timeout=0",
    "nightly --set priority=3",
    "nightly --set priority=99",
    "nightly --set priority=1.5",
    "nightly --set priority=high",
    'nightly --set retry={"attempts":5,"delay":"2s"}',
    'nightly --set retry={"attempts":0}',
    'nightly --set retry={"attempts":"many"}',
    'nightly --set retry={"attempt":5}',
    'nightly --set retry={"attempts":5,"__proto__":{"delay":"1s"}}',
    'nightly --set retry={"delay":"20y"}',
    "nightly --set retry=5",
    "nightly --set retry=none",
    'nightly --set misfire={"policy":"all"}',
    'nightly --set misfire={"policy":"some"}',
    "nightly --set misfire=some",
    "nightly --set overlap=skip",
    "nightly --set overlap=sometimes",
    'nightly --set overlap={"policy":"queue","limit":3}',
    'nightly --set overlap={"policy":"queue","limit":-3}',
    "nightly --set group=other",
    "nightly --set group=other~group",
    `nightly --set group=${"g".repeat(101)}`,
    "nightly --set group=",
    "nightly --set description=words",
    `nightly --set description=${"d".repeat(5_000)}`,
    'nightly --set labels={"team":"a"}',
    'nightly --set labels={"team":5}',
    'nightly --set labels={"__proto__":"a"}',
    "nightly --set labels=team",
    'nightly --set slotPayload={"n":1}',
    'nightly --set slotPayload={"__proto__":{"x":1}}',
    'nightly --set slotPayload={"a":"\\u0000"}',
    "nightly --set slotPayload={",
    'nobody --set rate={"limit":9,"per":"1m"}',
    'nobody --set rate={"limit":0,"per":"1m"}',
    'nobody --set rate={"limit":9}',
    "nobody --set rate=none",
    "nobody --set after=order",
    "nobody --set after=no-such",
    "nobody --set after=nobody",
    'nobody --set after={"tasks":["order"],"on":"never"}',
    "nobody --set after=none",
    "nobody --set limit=2",
    "nobody --set limit=-2",
    'nightly --set calendar={"name":"de"}',
    'nightly --set calendar={"name":"no-such"}',
    'nightly --set calendar={"name":""}',
    'nightly --set blackout=[{"from":"22:00","to":"23:00"}]',
    'nightly --set blackout=[{"from":"25:00"}]',
    'nightly --set payloadSchema={"type":"object"}',
    "nightly --set payloadSchema=5",
    "nightly --set route=least-loaded",
    "nightly --set lost=ask",
    'nightly --set command=["/bin/true"]',
    "nightly --set __proto__=1",
    "nightly --set constructor=1",
    "nightly --set timout=1h",
    "nightly --set timeout=3h --expect-version 1",
    "nightly",
    "no-such --set timeout=1h",
    "nightly --set timeout",
  ],
  "tasks revert": [
    "nightly timeout",
    "nightly timeout priority",
    "nightly no-such",
    "nightly __proto__",
    "order",
    "no-such",
    "nightly --expect-version 1",
    "nightly",
  ],
  "tasks backfill": [
    "nightly --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z --dry-run",
    "nightly --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z --rate 10/s",
    "nightly --from 2026-02-01T00:00:00Z --to 2026-02-02T00:00:00Z --wait --yes",
    "nightly --from 2026-03-01T00:00:00Z --to 2026-03-03T00:00:00Z --reverse",
    "nightly --from 2026-01-03T00:00:00Z --to 2026-01-01T00:00:00Z",
    "nightly --from 1800-01-01T00:00:00Z --to 1800-01-03T00:00:00Z",
    "nightly --from 2030-01-01T00:00:00Z --to 2030-01-03T00:00:00Z",
    "nightly --from 2026-01-01T00:00:00Z --to 2026-01-03T00:00:00Z --dry-run --rate 0/s",
    "order --from 1d --dry-run",
    "mail --from 1d --dry-run",
    "no-such --from 1d --dry-run",
    "nightly",
  ],
  "runs list": [
    "",
    "--state ready",
    "--state failed --task order",
    "--task no-such",
    "--since 1d -n 2",
    "-n 0",
    "--state lost",
  ],
  "runs show": ["{good}", "{bad}", "{waiting}", "{good} --logs 0", "999999", "0", "12345678901234567890", "abc"],
  "runs tail": ["", "--task order", "--task no-such", "-n 0"],
  "runs cancel": [
    "{waiting} --reason not~now",
    "{good}",
    "{waiting} {bad}",
    "999999",
    "999998 999999",
    "0",
    "-- -1",
    "--task nobody --since 1d",
    "--task no-such",
    "--matching zzz* --state ready",
    "--all --dry-run",
    "--group elsewhere --dry-run",
    "--state ready --dry-run",
    "--state failed",
    "",
  ],
  "runs rerun": [
    "{good} --reason again",
    "{bad}",
    "{good} {bad}",
    "999999",
    "0",
    "999998 0",
    "--task order --since 1d --dry-run",
    "--task order --state failed --wait",
    "--task no-such",
    "--all --dry-run",
    "{good} --all",
    "",
  ],
  "runs decide": [
    "{good} retry",
    "{bad} fail",
    "{waiting} retry --reason ledger",
    "{good} perhaps",
    "999999 retry",
    "0 fail",
    "x fail",
  ],
  "operations list": ["", "-n 1"],
  "operations show": ["{operation}", "999999", "0", "x"],
  "operations stop": ["{operation}", "999999", "0", "x"],
  "operations wait": ["{operation}", "999999", "0", "x"],
  "dead list": ["", "--task order", "--task no-such", "--since 1d", "--matching ord*"],
  "dead show": ["{fingerprint}", "no-such", "{fingerprint} -n 1"],
  "dead redrive": [
    "--task order --dry-run",
    "--task no-such",
    "--fingerprint no-such",
    "--task mail --since 1d --until 1h",
    "",
    "--all --dry-run",
    "--task broken-1 --wait",
    "--task broken-2",
    "--task broken-3",
  ],
  "dead dismiss": [
    "--task order --dry-run",
    "--task no-such",
    "--matching zzz*",
    "",
    "--all --dry-run",
    "--all --task order",
    "--task broken-4",
    "--task broken-5",
    "--task broken-6 --wait",
  ],
  "calendars set": [
    "feasts --days 2030-12-25 --zone Europe/Berlin",
    "feasts --days 2030-12-25 --zone Europe/Berlin",
    "feasts --days 2030-12-26,2030-12-25 --zone Europe/Berlin --reason more",
    "feasts --days 2030-02-30",
    "feasts --days tomorrow",
    "feasts --weekend mun",
    "feasts --weekend sat,sat --zone UTC",
    "feasts --zone Mars/Olympus",
    "feasts --zone UTC --ics {folder}/days.ics",
    "feasts --zone UTC --ics {folder}/none.ics",
    "feasts --zone UTC --ics {folder}/tasks.yaml",
    "two~words --zone UTC",
    "de --zone Europe/Berlin",
    "de --zone Europe/Berlin --json",
    "de --zone Europe/Berlin --yes",
    "de --zone Europe/Berlin --days 2030-12-25",
  ],
  "calendars list": [""],
  "calendars show": [
    "de",
    "de --version=1",
    "de --version=9",
    "no-such",
    "de --compare {folder}/days.ics",
    "de --compare {folder}/days.ics --days 2030-12-25 --weekend=fri --zone UTC --years 2 --strict",
    "de --compare {folder}/none.ics",
    "no-such --compare {folder}/days.ics",
  ],
  "calendars remove": ["feasts", "feasts", "de", "no-such"],
  "groups list": [""],
  "groups limit": [
    "elsewhere 4",
    "elsewhere 4 --reason slow",
    "elsewhere none",
    "elsewhere 0",
    "elsewhere x",
    "elsewhere 1e3",
    "elsewhere 100001",
    "no-such 4",
    "two~words 4",
  ],
  "keys create": [
    "reports --group elsewhere",
    "reports",
    "two~words",
    "other --group two~words",
    "other --group a --group a",
  ],
  "keys list": [""],
  "keys revoke": ["reports", "reports", "no-such"],
  "users create": [
    "ann --role operator",
    "ann",
    "two~words",
    "eva --in billing --role editor",
    "eve --in a/b",
    "evi --in a a",
    "eve --role king",
    "ido --reason new",
  ],
  "users list": [""],
  "users password": ["ann", "no-such"],
  "users remove": ["eva --reason left", "eva", "no-such"],
  "secrets set": [
    "bank",
    "bank --task order --reason new",
    "bank --any-task",
    "bank --any-task --task order",
    "two~words",
    "bank --task no-such",
  ],
  "secrets list": [""],
  "secrets remove": ["bank --reason gone", "bank", "no-such"],
  "secrets rewrap": ["", "--reason yearly"],
  alarms: [""],
  "alarms list": [""],
  "alarms acknowledge": ["late --task order", "late", "late --task no-such", "stuck", "no-such"],
  "alarms silence": [
    "late --for 2h",
    "late --task order --for 2h --reason migration",
    "--task mail --for 1h",
    "--for 1h",
    "late --for 31d",
    "late --for never",
    "late --for 0s",
    "late",
    "no-such --for 1h",
    "late --task no-such --for 1h",
  ],
  "alarms silences": [""],
  "alarms unsilence": ["{silence}", "{silence}", "999999", "0", "x"],
  apply: [
    "{folder}/tasks.yaml --plan",
    "{folder}/tasks.yaml --reason begin",
    "{folder}/tasks.yaml --expect-plan 000000000000",
    "{folder}/tasks.yaml",
    "{folder}/changed.yaml --prune --reason month's~end",
    "{folder}/thief.yaml",
    "{folder}/some.yaml",
    "{folder}/wrong.yaml",
    "{folder}/proto.yaml",
    "{folder}/none.yaml",
    "{folder}/tasks.yaml --bundle two~words",
    "{folder}/loose.yaml --prune",
    "{folder}/loose.yaml --author ci --plan",
  ],
  diff: [
    "{folder}/tasks.yaml",
    "{folder}/changed.yaml --prune",
    "{folder}/thief.yaml --adopt",
    "{folder}/wrong.yaml",
    "{folder}/none.yaml",
    "{folder}/tasks.yaml --overwrite-edits",
    "{folder}/loose.yaml",
  ],
  export: ["", "nightly", "order mail", "order no-such", "--group elsewhere", "--bundle billing", "--bundle no-such"],
  simulate: [
    "--from 2030-12-24T00:00:00Z",
    "--from 2030-12-24T00:00:00Z --task nightly -n 1",
    "--task no-such",
    "--from 2030-12-24T00:00:00Z --to 2030-12-23T00:00:00Z",
    "{folder}/tasks.yaml --from 2030-12-24T00:00:00Z",
  ],
  "import crontab": [
    "{folder}/crontab --zone UTC",
    "{folder}/crontab --zone UTC",
    "{folder}/crontab --zone Mars/Olympus",
    "{folder}/none --zone UTC",
    "{folder}/crontab --zone UTC --prefix two~words",
    "{folder}/crontab --zone UTC --group two~words",
    "{folder}/crontab --dry-run --zone UTC",
  ],
  "nodes list": ["", "--terms 0"],
  "nodes drain": [
    "w-prepared",
    "w-prepared --reason again --wait",
    "no-such",
    "w-preparde",
    "w-prepared --timeout 5m",
    "w-prepared --wait --timeout soon",
  ],
  "nodes resume": ["w-prepared", "w-prepared", "no-such"],
  top: [""],
};

/** One command of the program that does something. */
export interface Leaf {
  /** "tasks show" */
  name: string;
  command: Command;
}

export function leaves(): Leaf[] {
  const program = commands(new Terminal({ json: true, colour: false }), () => undefined);
  const found: Leaf[] = [];
  const walk = (command: Command, before: string) => {
    for (const one of command.commands) {
      const name = before === "" ? one.name() : `${before} ${one.name()}`;
      // A family without anything of its own is only a name.
      if ((one as unknown as { _actionHandler: unknown })._actionHandler) found.push({ name, command: one });
      walk(one, name);
    }
  };
  walk(program, "");
  return found;
}

export const ofServer = (): Leaf[] => leaves().filter(({ name }) => !(name in ofNoServer) && !importsFiles.test(name));

/** Values that somebody gives where something else is meant. */
export const oddValues: readonly string[] = [
  "",
  "..",
  ".",
  "two words",
  "a/b?c#d%2Fé",
  "__proto__",
  "0",
  "-1",
  "1e9",
  "n".repeat(250),
  "r".repeat(1_100),
];

export const wordsOf = (line: string): string[] =>
  line.split(" ").flatMap((word) => (word === "" ? [] : [word.replaceAll("~", " ")]));

/** The words, with what stands for something in its place. */
export const placedIn = (words: readonly string[], known: Readonly<Record<string, unknown>>): string[] =>
  words.map((word) => word.replace(/\{(\w+)\}/g, (whole, name: string) => String(known[name] ?? whole)));

/** The first line of a command with each of its flags, and with odd values for each argument and option. */
export function varied({ name, command }: Leaf): string[][] {
  const words = wordsOf(lines[name]?.[0] ?? "");
  const made: string[][] = [];
  const first = words.findIndex((word) => word.startsWith("-"));
  const given = first < 0 ? words.length : first;
  for (let at = 0; at < command.registeredArguments.length; at++)
    for (const value of oddValues) {
      // What begins with a dash is an option to the program, and refused before anything is asked.
      if (value.startsWith("-")) continue;
      made.push([...words.slice(0, Math.min(at, given)), value, ...words.slice(at < given ? at + 1 : given)]);
    }
  for (const option of command.options) {
    const flag = option.long as string;
    if (notVaried.has(flag)) continue;
    if (!takesValue(option)) made.push([...words, flag]);
    else for (const value of oddValues) made.push([...words, `${flag}=${value}`]);
  }
  return made.map((odd) => [...name.split(" "), ...odd]);
}

const takesValue = ({ required, optional }: Option): boolean => required || optional;
