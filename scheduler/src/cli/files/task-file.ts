import { existsSync, readdirSync, statSync } from "node:fs";
import * as nodeModule from "node:module";
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { createJiti } from "jiti";
import { CarillonError, isCarillonError, messageOf } from "../../base/errors.ts";
import { meant } from "../../base/nearest.ts";
import * as embeddedModule from "../../embedded/index.ts";
import * as carillonModule from "../../index.ts";
import { Carillon } from "../../library/carillon.ts";
import * as workerModule from "../../library/remote-worker.ts";
import { RemoteWorker } from "../../library/remote-worker.ts";
import { type RemoteWorkerOptions, workerPreset } from "../../settings/remote-worker.ts";
import { type CarillonOptions, carillonPreset } from "../../settings/settings.ts";
import { loadHint } from "./load-hint.ts";
import { shownPath } from "./shown-path.ts";

const wanted = "Export what carillon() gives, for example: export const tower = carillon();";

/**
 * Loads a module and returns the Carillon instances that it exports. `decide` computes the options of each from those that the file passes.
 * The file's import of "carillon" always resolves to this package, wherever the file is, so that the command line and the library have the
 * same version and share one copy.
 * @throws FILE_INVALID, and errors of the file's own calls of Carillon
 */
export async function loadFile(path: string, decide: (given: CarillonOptions) => CarillonOptions): Promise<Carillon[]> {
  const { shown, loaded } = await loadModule(path, (work) => carillonPreset.during(decide, work));
  const towers = new Set<Carillon>();
  for (const [name, value] of Object.entries(loaded)) {
    if (value instanceof Carillon) towers.add(value);
    else if (isForeign(value)) {
      throw invalid(
        `${shown}: ${name} was made by another copy of carillon than this one`,
        'Import it as "carillon", not by a path or from a bundle.',
      );
    }
  }
  if (towers.size > 0) return [...towers];
  const hint = "tasks" in loaded ? `${wanted} Or store its tasks with: carillon apply ${shown}.` : wanted;
  throw invalid(`${shown} exports no Carillon${exportsText(loaded)}`, hint);
}

/**
 * Loads a module for `worker --server` and returns the workers that it exports. @throws FILE_INVALID, and errors of the file's own calls
 */
export async function loadWorkers(
  path: string,
  decide: (given: RemoteWorkerOptions) => RemoteWorkerOptions,
): Promise<RemoteWorker[]> {
  const { shown, loaded } = await loadModule(path, (work) => workerPreset.during(decide, work));
  const workers = Object.values(loaded).filter((value) => value instanceof RemoteWorker);
  if (workers.length > 0) return [...new Set(workers)];
  throw invalid(
    `${shown} exports no worker of "carillon/worker"${exportsText(loaded)}`,
    'For example: import { worker } from "carillon/worker"; export const mine = worker().task("name", handler);',
  );
}

/**
 * Returns those of a module's exports `tasks`, `alarms`, `hooks` and `bundle` that it has; if it has none of the first three, its default
 * export.
 * @throws FILE_INVALID if it has neither
 */
export async function loadTasksModule(path: string): Promise<unknown> {
  const { shown, loaded } = await loadModule(path, (work) => work());
  const { tasks, bundle, alarms, hooks, default: whole } = loaded;
  if (tasks !== undefined || alarms !== undefined || hooks !== undefined)
    return Object.fromEntries(
      Object.entries({ tasks, bundle, alarms, hooks }).filter(([, given]) => given !== undefined),
    );
  if (whole !== undefined && !(whole instanceof Carillon)) return whole;
  if (Object.values(loaded).some((value) => value instanceof Carillon))
    throw invalid(
      `${shown} exports a Carillon, whose tasks are stored when it starts`,
      "To apply tasks, export their options: export const tasks = { settle: { schedule: … } };",
    );
  throw invalid(
    `${shown} exports no tasks${exportsText(loaded)}`,
    "Such as export const tasks = { settle: { schedule: … } };",
  );
}

/** Returns the default export of a module, such as a configuration. @throws FILE_INVALID if it cannot be loaded, or has none */
export async function loadDefault(path: string): Promise<unknown> {
  const { shown, loaded } = await loadModule(path, (work) => work());
  if (loaded.default !== undefined) return loaded.default;
  throw invalid(
    `${shown} has no default export${exportsText(loaded)}`,
    'Such as export default { schema: "billing" };',
  );
}

const exportsText = (loaded: object) => {
  const names = Object.keys(loaded).filter((name) => name !== "module.exports");
  return names.length > 0 ? ` (it exports ${names.slice(0, 8).join(", ")})` : "";
};

async function loadModule(
  path: string,
  under: (work: () => Promise<Record<string, unknown>>) => Promise<Record<string, unknown>>,
): Promise<{ shown: string; loaded: Record<string, unknown> }> {
  const file = resolve(path);
  const shown = shownPath(file);
  if (!existsSync(file)) {
    const folder = dirname(file);
    const near = existsSync(folder) ? meant(basename(file), readdirSync(folder)) : "";
    throw invalid(`${shown} does not exist${near}`, "Give the path of a module that exports a Carillon.");
  }
  if (!statSync(file).isFile())
    throw invalid(`${shown} is not a file`, "Give the path of a module that exports a Carillon.");
  try {
    return { shown, loaded: await under(() => importModule(file)) };
  } catch (error) {
    if (isCarillonError(error)) {
      const { code, message, hint, path: part } = error;
      throw new CarillonError(code, `${shown}: ${message}`, { hint, cause: error, path: part });
    }
    const message = messageOf(error);
    const why = firstLines(message).replaceAll(file, shown);
    const hint = loadHint({ error, message, file, shown, exported: Object.keys(carillonModule) });
    throw invalid(`${shown} could not be loaded: ${why}`, hint, error);
  }
}

async function importModule(file: string): Promise<Record<string, unknown>> {
  const { features } = process as { features: { typescript?: unknown } };
  const { registerHooks } = nodeModule as unknown as { registerHooks?: (hooks: { resolve: Resolve }) => unknown };
  if (features.typescript && registerHooks) {
    registerHooks({ resolve: resolveHere });
    return importQuietly(pathToFileURL(file).href);
  }
  const jiti = createJiti(import.meta.url, {
    interopDefault: false,
    virtualModules: {
      carillon: carillonModule,
      "carillon/embedded": embeddedModule,
      "carillon/worker": workerModule,
    },
  });
  return jiti.import(file);
}

type Context = { conditions?: readonly string[] };
type Resolve = (specifier: string, context: Context, next: (specifier: string, context: object) => unknown) => unknown;

/** A loader hook that resolves "carillon" as if this file had imported it; the package can import itself by its own name. */
const resolveHere: Resolve = (specifier, context, next) => {
  if (!/^carillon(\/|$)/.test(specifier)) return next(specifier, context);
  // For `require`, Node ignores the parent URL in the context and resolves from the importing module, so the URL is resolved here.
  if (context.conditions?.includes("require"))
    return { url: import.meta.resolve(specifier), format: "module", shortCircuit: true };
  return next(specifier, { ...context, parentURL: import.meta.url });
};

/** Imports a module and hides Node's warnings about TypeScript and about a missing package.json, because both are intended here. */
async function importQuietly(url: string): Promise<Record<string, unknown>> {
  const { emitWarning } = process;
  process.emitWarning = ((warning: string | Error, ...rest: unknown[]) => {
    const text = typeof warning === "string" ? warning : warning.message;
    if (/^Type Stripping is|^Module type of file|MODULE_TYPELESS_PACKAGE_JSON/.test(text)) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  }) as typeof process.emitWarning;
  try {
    return await import(url);
  } finally {
    process.emitWarning = emitWarning;
  }
}

const isForeign = (value: unknown) =>
  typeof value === "object" &&
  value !== null &&
  (value as { constructor?: { name?: string } }).constructor?.name === "Carillon";

const firstLines = (text: string) => text.trim().split("\n").slice(0, 3).join(" ").replace(/\s+/g, " ").slice(0, 400);

const invalid = (message: string, hint: string, cause?: unknown) =>
  new CarillonError("FILE_INVALID", message, { hint, cause });
