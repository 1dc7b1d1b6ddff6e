import { partsOf } from "./code.ts";
import { at, type HouseFile, isCode, isSource, isTest, type Rule } from "./tree.ts";

/** Returns the places at which `pattern` matches in this part of the file, as violations. */
function find(file: HouseFile, part: "code" | "comments" | "text", pattern: RegExp, what: string): string[] {
  const text = part === "text" ? file.text : partsOf(file.text)[part];
  return [...text.matchAll(pattern)].map((match) => at(file, match.index, `${what}: ${match[0].trim()}`));
}

/**
 * Files that may read clocks and set timers. supervision.ts and presence.ts watch processes of the operating system with timers that must
 * not keep Node.js running.
 */
const ownTime =
  /^scheduler\/src\/(?:base\/clock\.ts|base\/random\.ts|index\.ts|cli\/.*|embedded\/supervision\.ts|embedded\/presence\.ts)$/;
const timeAndChance =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()|\bMath\.random\b|\b(?:setTimeout|setInterval|setImmediate)\b|\bperformance\.now\b|\bprocess\.hrtime\b|\bAbortSignal\.timeout\b/g;

/** Code that the simulation runs with a virtual clock and seeded random numbers, so it must not use those of the system. */
const simulated =
  /^scheduler\/src\/(?:base|schedule|task|run|slots|cluster|alarms|access|settings|api|engine|worker|apply)\/|^scheduler\/src\/store\/[^/]+\.ts$/;
/** Files that may use the system's clock and random numbers: they assemble other parts, or generate names and secrets. */
const composes =
  /^scheduler\/src\/(?:base\/(?:clock|random|node-name)|settings\/surroundings|access\/(?:worker-key|password|secrets\/secret-keys))\.ts$/;
const systems = /\b(?:systemClock|systemRandom|randomUUID|randomBytes|randomInt|getRandomValues)\b/g;

/**
 * Rule: sources take time and random numbers as arguments. Only the files of `ownTime` read a clock or set timers, and simulated
 * code uses the system's clock and random numbers only in the files of `composes`.
 */
export const timeArrives: Rule = (files) =>
  files
    .filter((file) => isSource(file) && !ownTime.test(file.path))
    .flatMap((file) => [
      ...find(file, "code", timeAndChance, "reads a clock, sets a timer or rolls dice; take Clock or Random"),
      ...find(file, "text", /["']node:timers(?:\/promises)?["']/g, "sets a timer; take Clock"),
      ...(simulated.test(file.path) && !composes.test(file.path)
        ? find(file, "code", systems, "takes the system's time or chance by itself; take Clock or Random")
        : []),
    ]);

const published = /^(?:scheduler|zookeeper|console)\/src\/.*\.tsx?$/;
/** This file may run text as code: its scripts are constants that stop slow regular expressions. */
const ownScripts = "scheduler/src/base/cut-off.ts";

/** Rule: published code, except `ownScripts`, evaluates no text as code, and inserts no text into a page as HTML. */
export const nothingEvaluated: Rule = (files) =>
  files
    .filter((file) => published.test(file.path) && !isTest(file) && file.path !== ownScripts)
    .flatMap((file) => [
      ...find(file, "code", /(?<![.\w])eval\s*\(|\bnew\s+Function\b|\bFunction\s*\(\s*["'`]/g, "runs text as code"),
      ...find(
        file,
        "code",
        /\bdangerouslySetInnerHTML\b|\.(?:inner|outer)HTML\b|\bdocument\.write\b/g,
        "takes text for a page",
      ),
      ...find(file, "text", /["'](?:node:)?vm["']/g, "runs text as code"),
    ]);

/**
 * Files that may create regular expressions from text: from their own constants, from words that have only letters (line.ts), or from
 * secrets with each character escaped (redactor.ts).
 */
const madeExpressions =
  /^scheduler\/src\/(?:coordination\/redis\/server|http\/console-pages|importers\/servers\/powerjob|schedule\/calendar-interval|schedule\/phrase\/line|access\/secrets\/redactor)\.ts$/;

/**
 * Rule: a regular expression is a literal and not created from text, because special characters in foreign text would change its meaning.
 */
export const expressionsWritten: Rule = (files) =>
  files
    .filter((file) => published.test(file.path) && !isTest(file) && !madeExpressions.test(file.path))
    .flatMap((file) => find(file, "code", /\bRegExp\s*\(/g, "makes a regular expression"));

/** This file may set an address, because the address leads to the server's own path that begins a sign-in at another site. */
const ownLinks = "console/src/sign-in/sign-in.tsx";

/**
 * Rule: the console uses only the router's links, which lead to its own pages. Foreign text is never used as an address, because an address
 * such as `javascript:…` can run code.
 */
export const linksByRouter: Rule = (files) =>
  files
    .filter((file) => /^console\/src\/.*\.tsx?$/.test(file.path) && !isTest(file) && file.path !== ownLinks)
    .flatMap((file) =>
      find(
        file,
        "text",
        /\b(?:href|action|formAction)=(?!"#)|\blocation\.(?:assign|replace)\(|\blocation(?:\.href)?\s*=(?!=)|\bwindow\.open\(/g,
        "leads elsewhere; use the router's Link",
      ),
    );

const switchedOff =
  /\b(?:describe|it|test|suite|bench)(?:\.\w+)*\.(?:only|skip|todo|fails)\b|\.(?:skipIf|runIf)\b|\b(?:context|ctx)\.skip\b|\b(?:xit|xtest|xdescribe|fit|fdescribe)\s*\(/g;

/** Rule: no test is switched off, always or under a condition. */
export const everyTestRuns: Rule = (files) =>
  files
    .filter((file) => isCode(file) && isTest(file))
    .flatMap((file) => find(file, "code", switchedOff, "a test that may not run"));

/**
 * Folders with modules that test files in a shared process import: those of the projects with `isolate: false` in vitest.config.ts, except
 * the unit tests.
 */
const sharing = /^(?:scheduler\/test\/(?:conformance|support)|zookeeper\/test)\//;
const looseHook = /^(?:before|after)(?:All|Each)\b/gm;

/**
 * Rule: a module that several test files import has no hook at its top level. The module is loaded once, so only the first test
 * file that imports it would get the hook.
 */
export const hooksHold: Rule = (files) =>
  files
    .filter((file) => sharing.test(file.path) && !file.path.endsWith(".test.ts"))
    .flatMap((file) => find(file, "code", looseHook, "a hook outside of a function that the test calls"));

const leftOver = /\b(?:TODO|FIXME|XXX|HACK)\b/g;
const prose = /\.(?:md|sh|ya?ml|toml)$|^\.ci\//;

/** Rule: no comment, page or configuration file marks unfinished work; that belongs in an issue. */
export const nothingLeftOver: Rule = (files) =>
  files.flatMap((file) => {
    if (isCode(file)) return find(file, "comments", leftOver, "unfinished");
    return prose.test(file.path) ? find(file, "text", leftOver, "unfinished") : [];
  });

const emptyCatch = /\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}/g;
const emptyHandler =
  /\.catch\(\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>\s*(?:\{\s*\}|undefined|null|void 0|false)\s*,?\s*\)|\.catch\(\s*(?:noop|\(\)\s*=>\s*\(\s*\{\s*\}\s*\))\s*\)/g;

/** Rule: where an error is ignored, a comment beside it says why. */
export const nothingSwallowed: Rule = (files) =>
  files.filter(isCode).flatMap((file) => {
    const { code, comments } = partsOf(file.text);
    return [...code.matchAll(emptyCatch), ...code.matchAll(emptyHandler)].flatMap((match) => {
      const lineEnd = file.text.indexOf("\n", match.index + match[0].length);
      const lineStart = file.text.lastIndexOf("\n", match.index);
      const above = file.text.lastIndexOf("\n", lineStart - 1);
      const isCommentAbove = /^\s*\/\//.test(file.text.slice(above + 1, Math.max(0, lineStart)));
      const from = Math.max(0, isCommentAbove ? above : lineStart);
      const reason = comments.slice(from, lineEnd < 0 ? undefined : lineEnd).trim();
      return reason === "" ? [at(file, match.index, `swallows an error without a reason: ${match[0].trim()}`)] : [];
    });
  });
