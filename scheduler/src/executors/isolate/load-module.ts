import { fileURLToPath } from "node:url";
import { CarillonError, messageOf } from "../../base/errors.ts";
import type { Handler } from "../../run/handler.ts";

const typeScript = /\.[cm]?tsx?$/;
/** Errors of Node.js for TypeScript that it cannot run itself: the file type, syntax that must be compiled, imports of compiled files. */
const notAsItIs = ["ERR_UNKNOWN_FILE_EXTENSION", "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX", "ERR_MODULE_NOT_FOUND"];

/** Imports a module and returns the function that is its default export. @throws TASK_INVALID, and errors thrown by the module */
export async function loadHandler(url: string): Promise<Handler> {
  const exported = defaultOf(await importModule(url));
  if (typeof exported === "function") return exported as Handler;
  throw new CarillonError("TASK_INVALID", `${fileURLToPath(url)} has no function as its default export`, {
    hint: "Let it have one: export default async (run, payload) => { … }.",
    path: "handler",
  });
}

/**
 * Imports a module. TypeScript is run as this process runs it, by a loader or by Node.js itself; if neither can, it is compiled first, as
 * the command line does.
 */
async function importModule(url: string): Promise<unknown> {
  try {
    return await import(url);
  } catch (error) {
    const { code } = (error ?? {}) as { code?: unknown };
    if (!typeScript.test(url) || !notAsItIs.some((one) => one === code)) throw error;
    const { createJiti } = await import("jiti");
    return createJiti(import.meta.url, { interopDefault: false }).import(fileURLToPath(url));
  }
}

/** The default export of an ES module, or of a module that was compiled to CommonJS. */
function defaultOf(module: unknown): unknown {
  const first = (module as { default?: unknown } | null)?.default;
  return typeof first === "object" && first !== null && "default" in first ? first.default : first;
}

/** Converts the error of a module that could not be loaded: keeps its message and adds the file's path. */
export function loadingFailed(url: string, thrown: unknown): CarillonError {
  const path = fileURLToPath(url);
  const message = messageOf(thrown);
  return new CarillonError("TASK_INVALID", message.includes(path) ? message : `${path} cannot be loaded: ${message}`, {
    hint:
      (thrown as Partial<CarillonError> | null)?.hint ||
      "It is loaded in a thread or process of its own: what it imports must be found from there.",
    path: "handler",
    cause: thrown,
  });
}
