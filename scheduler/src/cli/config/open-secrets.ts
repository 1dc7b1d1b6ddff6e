/** Finds secrets in plain text in settings files that other users of this machine may read. */
import { statSync } from "node:fs";
import { isOpenHere } from "../../access/secrets/private-file.ts";
import { hasPassword } from "../../base/credentials.ts";
import { CarillonError } from "../../base/errors.ts";
import { secretOptions } from "../../settings/alarms/channels.ts";
import { inFile, settings } from "./config-settings.ts";

type Values = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isWritten = (value: unknown): boolean =>
  typeof value === "string"
    ? !/^(?:env|file):/.test(value)
    : typeof value === "object" && value !== null && Object.values(value).some(isWritten);

const holdsPassword = (url: unknown): boolean => typeof url === "string" && hasPassword(url);

/**
 * True if the URL may contain a secret: the webhook of a chat service has an unguessable path, and the URL alone is enough to post
 * there.
 */
const holdsKey = (webhook: unknown): boolean => {
  if (typeof webhook !== "string" || !URL.canParse(webhook)) return false;
  const { protocol, pathname, search } = new URL(webhook);
  return /^https?:$/.test(protocol) && (pathname !== "/" || search !== "");
};

/** Returns the names of secrets in plain text in the option `alarms`, `webhooks` or `provider`, which may have a file of its own. */
export function secretsInOptions(name: string, given: unknown): string[] {
  if (!isObject(given)) return [];
  if (name === "provider") return isWritten(given.clientSecret) ? ["clientSecret"] : [];
  if (name === "webhooks")
    return Object.entries(given).flatMap(([webhook, one]) =>
      isObject(one)
        ? [...(isWritten(one.secret) ? ["secret"] : []), ...(holdsKey(one.url) ? ["url"] : [])].map(
            (key) => `${webhook}.${key}`,
          )
        : [],
    );
  const channels = name === "alarms" && isObject(given.channels) ? Object.entries(given.channels) : [];
  const ping = name === "alarms" && isObject(given.ping) && holdsKey(given.ping.url) ? ["ping.url"] : [];
  const found = channels.flatMap(([channel, one]) => {
    if (!isObject(one)) return [];
    const { whole, urls } = secretOptions(one);
    const written = [
      ...whole.filter((key) => isWritten(one[key])),
      ...(holdsPassword(one.smtp) ? ["smtp"] : []),
      ...urls.filter((key) => holdsKey(one[key])),
    ];
    return written.map((key) => `channels.${channel}.${key}`);
  });
  return [...found, ...ping];
}

/**
 * Returns the names of settings whose values in the file are secrets in plain text.
 * @param values the file's values before texts such as "env:NAME" are replaced by variables
 */
export const secretsInSettings = (values: Values): string[] =>
  settings.flatMap(({ key, secret, kind }) => {
    const value = inFile(values, key);
    if (kind === "options") return secretsInOptions(key, value).map((inner) => `${key}.${inner}`);
    return (secret === "all" ? isWritten(value) : secret === "url" && holdsPassword(value)) ? [key] : [];
  });

/**
 * @param found the names of secrets in plain text in the file
 * @returns a SECRET_KEY_OPEN error if there are any and other users of this machine may read the file
 */
export function openSecrets(path: string, shown: string, found: readonly string[]): CarillonError | undefined {
  if (found.length === 0 || !isOpenHere(statSync(path))) return undefined;
  return new CarillonError(
    "SECRET_KEY_OPEN",
    `${shown} has secrets in it (${found.join(", ")}), and other users may read it`,
    {
      hint: `Write env:NAME in their place, or make the file the process's alone: chmod 600 ${shown}.`,
    },
  );
}
