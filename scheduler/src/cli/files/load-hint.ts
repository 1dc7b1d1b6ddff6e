/** Hints for a module that could not be loaded, because the errors of Node and jiti often do not name the cause. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, isAbsolute, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createJiti } from "jiti";
import { meant } from "../../base/nearest.ts";

export interface NotLoaded {
  error: unknown;
  /** The message of `error`. */
  message: string;
  /** The module's absolute path; `shown` is the path as users see it. */
  file: string;
  shown: string;
  /** The names that "carillon" exports. */
  exported: readonly string[];
}

/** Functions that recognise a cause; the first one that returns a hint is used. */
const causes: readonly ((notLoaded: NotLoaded) => string | undefined)[] = [
  ofExtension,
  ofModuleKind,
  ofTypes,
  ofImportedName,
  ofImportedFile,
];

/** Returns one line of advice, with the line in the file if the error's stack contains it. */
export function loadHint(notLoaded: NotLoaded): string {
  const place = placeOf(notLoaded);
  for (const cause of causes) {
    const hint = cause(notLoaded);
    if (hint !== undefined) return place === undefined ? hint : `${hint} Look at ${place}.`;
  }
  return place === undefined
    ? `Correct ${notLoaded.shown}: it ended with this error while it was loaded.`
    : `Look at ${place}.`;
}

function ofExtension({ file, shown }: NotLoaded): string | undefined {
  const extension = extname(file);
  if (/^\.[cm]?[jt]sx?$/.test(extension)) return undefined;
  return /^\.(ya?ml|json)$/.test(extension)
    ? `Store the tasks of such a file with: carillon apply ${shown}. This command takes a module (.ts, .js) with handlers.`
    : "Give a JavaScript or TypeScript module (.ts, .mts, .js, .mjs) that exports what carillon() gives.";
}

function ofTypes({ error, message, file, shown }: NotLoaded): string | undefined {
  if (/not supported in strip-only mode/.test(message))
    return "Node removes types and compiles nothing: write an object in place of an enum, and a field in place of a parameter property; or compile the file to JavaScript first.";
  if (!isSyntaxError(error) || !/^\.[cm]?js$/.test(extname(file)) || !isTypeScript(file)) return undefined;
  return `It has TypeScript's syntax: name it ${shown.replace(/js$/, "ts")}.`;
}

/** True for a syntax error. A syntax error of jiti has no special name, only the prefix `ParseError: ` in its message. */
const isSyntaxError = (error: unknown) =>
  error instanceof Error && (error.name === "SyntaxError" || error.message.startsWith("ParseError: "));

/** True if jiti can parse the file as TypeScript but not as JavaScript. jiti turns unparsable source into code that reports the error. */
function isTypeScript(file: string): boolean {
  const { transform } = createJiti(import.meta.url, { fsCache: false });
  const source = readFileSync(file, "utf8");
  const reads = (ts: boolean) => !transform({ source, filename: file, ts }).startsWith("exports.__JITI_ERROR__");
  return !reads(false) && reads(true);
}

function ofModuleKind({ message, shown }: NotLoaded): string | undefined {
  const ending = /ts$/.test(shown) ? "ts" : "js";
  if (/(require|module|exports|__dirname|__filename) is not defined/.test(message))
    return `It is read as an ES module: write import { carillon } from "carillon" and export, in place of require and module.exports; or name it .c${ending}.`;
  if (/Cannot use import statement outside a module|Unexpected token 'export'/.test(message))
    return `It is read as CommonJS: name it .m${ending}, or write "type": "module" into the nearest package.json.`;
  return undefined;
}

function ofImportedName({ message, exported }: NotLoaded): string | undefined {
  const [, name = ""] =
    /module 'carillon' does not provide an export named '(\w+)'/.exec(message) ??
    /_carillon\.(\w+)\) is not a function/.exec(message) ??
    [];
  if (name === "") return undefined;
  if (name === "default") return 'Write the name in braces: import { carillon } from "carillon".';
  return `"carillon" exports no ${JSON.stringify(name)}${meant(name, exported) || "."}`;
}

function ofImportedFile({ error, message, file }: NotLoaded): string | undefined {
  const [, name = ""] = /Cannot find (?:module|package) '([^']+)'/.exec(message) ?? [];
  if (name === "") return undefined;
  const { url } = error as { url?: unknown };
  const path = typeof url === "string" && url.startsWith("file:") ? fileURLToPath(url) : name;
  if (!isAbsolute(path))
    return path.startsWith(".") ? undefined : `Install the package: npm install ${path}; or correct its name.`;
  const there = [path.replace(/\.[cm]?js$/, ""), path].flatMap((one) => [`${one}.ts`, `${one}.mts`, `${one}.js`]);
  const found = there.find((one) => existsSync(one));
  if (found === undefined) return "Correct the path of the import.";
  const from = relative(dirname(file), found);
  return `Write the file's whole name: import … from "${from.startsWith(".") ? from : `./${from}`}".`;
}

/** Returns the first line of the file itself that appears in the error's stack; undefined if there is none. */
function placeOf({ error, file, shown }: NotLoaded): string | undefined {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  for (const [, url, line] of stack.matchAll(/((?:file:\/\/)?\/[^\s()]*?):(\d+)(?::\d+)?/g)) {
    const path = url?.startsWith("file:") ? fileURLToPath(url) : url;
    if (path === file) return `${shown}:${line}`;
  }
  return undefined;
}
