import { isUtf8 } from "node:buffer";
import { readSecretKeys } from "../../access/secrets/read-keys.ts";
import { makeSecretKey } from "../../access/secrets/secret-keys.ts";
import type { SecretRecord } from "../../access/secrets/secret-store.ts";
import { iso } from "../../api/run-json.ts";
import { CarillonError } from "../../base/errors.ts";
import { limits } from "../../base/limits.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { chosenReach, withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { ageText } from "../screen/times.ts";
import type { CommonOptions } from "../store-choice.ts";

const secretObject = ({ keyId, changedMs, ...rest }: SecretRecord) => ({
  ...rest,
  key: keyId,
  changed: iso(changedMs),
});

export interface SetOptions extends CommonOptions {
  task?: string[];
  anyTask?: boolean;
  reason?: string;
}

/** Stores a secret. The value is read only from standard input, because other processes can see arguments and environment variables. */
export async function setSecret(name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  if (options.anyTask && options.task)
    throw new CarillonError("USAGE", "--any-task and --task were given, and a secret is for any task or for some", {
      hint: "Give one of them.",
    });
  if (process.stdin.isTTY)
    throw new CarillonError(
      "USAGE",
      "the value is read from standard input, and here is a terminal that would show it",
      {
        hint: `Pipe it: carillon secrets set ${plain(name)} < file`,
      },
    );
  const value = (await readAll(process.stdin)).replace(/\r?\n$/, "");
  requireKeys(options);
  return withCluster(
    options,
    async ({ cluster }) => {
      const tasks = options.anyTask ? null : options.task;
      const made = await cluster.secrets.set(name, value, tasks, options.reason ?? "");
      if (terminal.json) terminal.object(secretObject(made));
      else terminal.line(`${plain(name)} is at version ${made.version}`);
      return exitCodes.ok;
    },
    { make: true },
  );
}

/**
 * Checks that this process has secret keys if the command uses the store directly, so that it fails before it connects. Through
 * a server, the server's keys are used.
 * @throws SECRET_KEY_MISSING and the errors of `readSecretKeys`
 */
function requireKeys(options: CommonOptions): void {
  if (chosenReach(options).kind === "store") readSecretKeys(undefined).present;
}

async function readAll(stream: NodeJS.ReadStream): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > limits.secretBytes + 2) break;
  }
  const whole = Buffer.concat(chunks);
  // A value that is too long was cut, possibly within a character, so it is not checked for UTF-8; the length check below refuses
  // it.
  if (bytes <= limits.secretBytes + 2 && !isUtf8(whole))
    throw new CarillonError("SECRET_INVALID", "the value is not UTF-8, and a secret is a text", {
      hint: "Encode it, for example: base64 < FILE | carillon secrets set NAME.",
    });
  return whole.toString();
}

export function listSecrets(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    const secrets = await cluster.secrets.list();
    const now = cluster.nowMs();
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
          plain(name),
          String(version),
          tasks === null ? "any" : plain(tasks.join(", ")),
          ageText(changedMs, now),
          plain(author),
          keyId,
        ]),
      );
    return exitCodes.ok;
  });
}

export function removeSecret(name: string, options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  return withCluster(options, async ({ cluster }) => {
    await cluster.secrets.remove(name, options.reason ?? "");
    if (terminal.json) terminal.object({ name });
    else terminal.line(`${plain(name)} is removed, and its values are destroyed`);
    return exitCodes.ok;
  });
}

/** Encrypts with the present key all data keys that another key has encrypted; repeats until none is left, or until Ctrl-C. */
export function rewrapSecrets(options: SetOptions, terminal: Terminal): Promise<ExitCode> {
  requireKeys(options);
  return withCluster(options, async ({ cluster, signal }) => {
    let [key, rewrapped, left] = ["", 0, 0];
    do {
      const done = await cluster.secrets.rewrap(options.reason ?? "");
      rewrapped += done.rewrapped;
      ({ key, left } = done);
    } while (left > 0 && !signal.aborted);
    if (terminal.json) terminal.object({ key, rewrapped, left });
    else if (left > 0)
      terminal.line(`${rewrapped} values are wrapped anew, and ${left} are left: run the command again`);
    else terminal.line(`${rewrapped} values are wrapped anew, all by the key ${key}`);
    return exitCodes.ok;
  });
}

/** Prints a new secret key; it is not stored. */
export async function makeKey(terminal: Terminal): Promise<ExitCode> {
  const key = makeSecretKey();
  if (terminal.json) terminal.object({ key });
  else terminal.line(key);
  return exitCodes.ok;
}
