import { existsSync, readFileSync } from "node:fs";
import { CarillonError, messageOf } from "../../base/errors.ts";
import { nearest } from "../../base/nearest.ts";
import { shownPath } from "../files/shown-path.ts";
import { checkKind, inFile, settings } from "./config-settings.ts";
import { openSecrets, secretsInSettings } from "./open-secrets.ts";

/** The contents of a project's configuration file, such as carillon.config.yaml. */
export interface ConfigFile {
  /** The path as shown to users. */
  path: string;
  values: Record<string, unknown>;
  /** A SECRET_KEY_OPEN error if the file contains a secret in plain text and other users of this machine may read it. */
  open?: CarillonError;
}

export const configNames = ["yaml", "yml", "json", "ts", "mts", "js", "mjs"].map((end) => `carillon.config.${end}`);

/**
 * Reads the named file, else the one that CARILLON_CONFIG names, else the one in the current folder; undefined if there is none. All
 * settings are checked, also those that the present command does not use; the first problem is thrown.
 * @throws CONFIG_INVALID, OPTION_INVALID
 */
export async function readConfig(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ConfigFile | undefined> {
  const file = await readRaw(named || environment.CARILLON_CONFIG);
  const [problem] = file ? problemsIn(file) : [];
  if (problem) throw problem;
  return file;
}

/**
 * As `readConfig` but without checks, for a caller that itself reports every problem in the file.
 * @throws CONFIG_INVALID; OPTION_INVALID for "env:NAME" if the variable is not set
 */
export async function readRaw(named: string | undefined): Promise<ConfigFile | undefined> {
  const there = named ? [named] : configNames.filter((name) => existsSync(name));
  const [path] = there;
  if (path === undefined) return undefined;
  if (there.length > 1)
    throw new CarillonError("CONFIG_INVALID", `there are several configuration files here: ${there.join(", ")}`, {
      hint: "Keep one, or name it with --config.",
    });
  const shown = shownPath(path);
  const wrong = (what: string, hint: string, cause?: unknown) =>
    new CarillonError("CONFIG_INVALID", `${shown} ${what}`, { hint, cause });
  let values: unknown;
  try {
    values = await load(path);
  } catch (cause) {
    throw wrong(
      `cannot be read: ${messageOf(cause)}`,
      "Give a file of YAML or JSON, or a module with a default export.",
      cause,
    );
  }
  if (typeof values !== "object" || values === null || Array.isArray(values))
    throw wrong("does not hold settings by name", "For example: schema: billing. See docs/reference/configuration.md.");
  const { fromEnvironment } = await import("../variables.ts");
  const open = openSecrets(path, shown, secretsInSettings(values as Record<string, unknown>));
  return { path: shown, values: fromEnvironment(values) as Record<string, unknown>, ...(open ? { open } : {}) };
}

async function load(path: string): Promise<unknown> {
  if (/\.[cm]?[jt]s$/.test(path)) {
    const { loadDefault } = await import("../files/task-file.ts");
    return loadDefault(path);
  }
  const text = readFileSync(path, "utf8");
  if (path.endsWith(".json")) return JSON.parse(text);
  const { yamlDocuments } = await import("../../apply/yaml-documents.ts");
  const [read, second] = yamlDocuments(text);
  if (read && "problem" in read) throw new Error(read.problem);
  if (second) throw new Error("it has several documents (---), and settings are one");
  return read?.content ?? {};
}

/** Returns all problems of a file except invalid values of the right type. */
export function problemsIn({ path, values }: ConfigFile): CarillonError[] {
  const problems: CarillonError[] = [];
  const known = settings.map(({ key }) => key);
  const tops = [...new Set(known.map((key) => key.split(".")[0] as string))];
  const unknown = (name: string, among: readonly string[], given: string) => {
    const meant = nearest(given, among);
    const hint = meant === "" ? `There are ${among.join(", ")}.` : `Did you mean ${meant}?`;
    problems.push(
      new CarillonError("CONFIG_INVALID", `${path}: there is no setting ${JSON.stringify(name)}`, { hint }),
    );
  };
  for (const [name, value] of Object.entries(values)) {
    if (!tops.includes(name)) unknown(name, tops, name);
    else if (!known.includes(name)) {
      const inner = known.filter((key) => key.startsWith(`${name}.`)).map((key) => key.slice(name.length + 1));
      if (typeof value !== "object" || value === null || Array.isArray(value))
        problems.push(
          new CarillonError("CONFIG_INVALID", `${path}: ${name} is not by name`, {
            hint: `It has ${inner.join(", ")}.`,
          }),
        );
      else for (const one of Object.keys(value)) if (!inner.includes(one)) unknown(`${name}.${one}`, inner, one);
    }
  }
  for (const one of settings) {
    const value = inFile(values, one.key);
    if (value === undefined) continue;
    try {
      checkKind(one, value, path);
    } catch (error) {
      problems.push(error as CarillonError);
    }
  }
  return problems;
}
