import { CarillonError } from "../errors.ts";
import { limits } from "../limits.ts";
import { iso } from "../run-object.ts";
import { makeSecretKey } from "../secret-keys.ts";
import type { SecretRecord } from "../secret-store.ts";
import { readSecretKeys } from "../secrets/read-keys.ts";
import { Secrets } from "../secrets.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import type { CommandParts } from "./operation-commands.ts";
import { type CommonOptions, operator, withStore } from "./store-choice.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";
import { ageText } from "./times.ts";

const most = 10_000;

const secretObject = ({ keyId, changedMs, ...rest }: SecretRecord) => ({
  ...{ ...rest, key: keyId, changed: iso(changedMs) },
});

interface SetOptions extends CommonOptions {
  task?: string[];
  anyTask?: boolean;
  reason?: string;
}

/** The value comes by standard input alone: arguments and variables are seen by others. */
async function setSecret(name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  if (process.stdin.isTTY)
    throw new CarillonError(
      "USAGE",
      "the value is read from standard input, and here is a terminal that would show it",
      {
        hint: `Pipe it: carillon secrets set ${plain(name)} < file`,
      },
    );
  const value = (await readAll(process.stdin)).replace(/\r?\n$/, "");
  const keys = readSecretKeys(undefined);
  // Refused before a store is looked for.
  keys.present;
  return withStore(
    options,
    async ({ store, nowMs }) => {
      const tasks = options.anyTask ? null : options.task;
      const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
      const made = await new Secrets(store.secrets, keys).set(name, value, tasks, change);
      if (terminal.json) terminal.object(secretObject(made));
      else terminal.line(`${plain(name)} is at version ${made.version}`);
      return exitCodes.ok;
    },
    { make: true },
  );
}

async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > limits.secretBytes + 2) break;
  }
  return Buffer.concat(chunks).toString();
}

function listSecrets(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs }) => {
    const secrets = await store.secrets.list("", most);
    const now = nowMs();
    if (terminal.json) terminal.object(secrets.map(secretObject));
    else if (secrets.length === 0) terminal.aside("There are no secrets. Make one: carillon secrets set NAME < file");
    else
      terminal.table(
        [
          { title: "NAME", least: 8 },
          { title: "VERSION", align: "right" },
          { title: "TASKS", least: 8 },
          { title: "CHANGED" },
          { title: "BY", drop: 1 },
          { title: "KEY", drop: 2 },
        ],
        secrets.map(({ name, version, tasks, changedMs, author, keyId }) => [
          ...[plain(name), String(version), tasks === null ? "any" : plain(tasks.join(", "))],
          ...[ageText(changedMs, now), plain(author), keyId],
        ]),
      );
    return exitCodes.ok;
  });
}

function removeSecret(name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  return withStore(options, async ({ store, nowMs }) => {
    await store.secrets.remove(name, { author: operator(), reason: options.reason ?? "", nowMs: nowMs() });
    if (terminal.json) terminal.object({ name });
    else terminal.line(`${plain(name)} is removed, and its values are destroyed`);
    return exitCodes.ok;
  });
}

/** Until nothing is left that another key wraps. */
function rewrapSecrets(options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  const keys = readSecretKeys(undefined);
  const key = keys.present;
  return withStore(options, async ({ store, nowMs, signal }) => {
    const secrets = new Secrets(store.secrets, keys);
    let rewrapped = 0;
    for (let left = 1; left > 0 && !signal.aborted; ) {
      const change = { author: operator(), reason: options.reason ?? "", nowMs: nowMs() };
      const done = await secrets.rewrap(change, limits.secretsAtOnce);
      rewrapped += done.rewrapped;
      left = done.left;
    }
    if (terminal.json) terminal.object({ key, rewrapped });
    else terminal.line(`${rewrapped} values are wrapped anew, all by the key ${key}`);
    return exitCodes.ok;
  });
}

const collect = (value: string, before: string[] = []) => [...before, value];

export function addSecrets({
  add,
  family,
  doing,
  terminal,
}: Pick<CommandParts, "add" | "family" | "doing" | "terminal">) {
  const secrets = family("secrets", "Keep values that tasks need and nobody is to read.");
  add(
    secrets,
    "set <name>",
    "Store a secret, or its next version, from standard input.",
    "carillon secrets set bank-token --task settle < token",
  )
    .option(
      "--task <NAME>",
      "let only this task's runs have it; may be repeated (default: as before, at first any)",
      collect,
    )
    .option("--any-task", "let any task's runs have it")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: SetOptions) => setSecret(name, options, terminal)));
  add(secrets, "list", "List the secrets: what there is, never the values.", "carillon secrets list").action(
    doing((_, options) => listSecrets(options, terminal)),
  );
  add(secrets, "remove <name>", "Destroy a secret's values.", "carillon secrets remove bank-token")
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: SetOptions) => removeSecret(name, options, terminal)));
  add(
    secrets,
    "rewrap",
    "Wrap what older keys wrap by the present key; no value is looked at.",
    "carillon secrets rewrap",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing((_, options: SetOptions) => rewrapSecrets(options, terminal)));
  add(
    secrets,
    "key",
    "Make a key for secrets, and print it.",
    "carillon secrets key >> /etc/carillon/secret-keys",
  ).action(
    doing(async () => {
      const key = makeSecretKey();
      if (terminal.json) terminal.object({ key });
      else terminal.line(key);
      return exitCodes.ok;
    }),
  );
}
