import { partsOf } from "./code.ts";
import { at, type HouseFile, isCode, isSource, isTest, type Rule } from "./tree.ts";

/** The places of `pattern` in the part of a file that `part` names. */
function find(file: HouseFile, part: "code" | "comments" | "text", pattern: RegExp, what: string): string[] {
  const text = part === "text" ? file.text : partsOf(file.text)[part];
  return [...text.matchAll(pattern)].map((match) => at(file, match.index, `${what}: ${match[0].trim()}`));
}

/** supervision.ts and presence.ts watch processes of the operating system, by timers that must not keep Node running. */
const ownTime =
  /^scheduler\/src\/(?:base\/clock\.ts|base\/random\.ts|index\.ts|cli\/.*|embedded\/supervision\.ts|embedded\/presence\.ts)$/;
const timeAndChance =
  /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()|\bMath\.random\b|\b(?:setTimeout|setInterval|setImmediate)\b|\bperformance\.now\b|\bprocess\.hrtime\b|\bAbortSignal\.timeout\b/g;

/** Code that the simulation runs with time and chance of its own: it must not name those of the system. */
const simulated =
  /^scheduler\/src\/(?:base|schedule|task|run|slots|cluster|alarms|access|settings|api|engine|worker|apply)\/|^scheduler\/src\/store\/[^/]+\.ts$/;
/** They compose, or make names and secrets. */
const composes =
  /^scheduler\/src\/(?:base\/(?:clock|random|node-name)|settings\/surroundings|access\/(?:worker-key|password|secrets\/secret-keys))\.ts$/;
const systems = /\b(?:systemClock|systemRandom|randomUUID|randomBytes|randomInt|getRandomValues)\b/g;

/** Time and chance arrive as arguments: only clock.ts, random.ts and the process's edge read them. */
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
/** Its scripts are constants of its own, which watch over regular expressions. */
const ownScripts = "scheduler/src/base/cut-off.ts";

/** No text is run as code, and none becomes a page by itself. */
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
 * Regular expressions made from constants of their own; from words, which have letters alone (line.ts); from secrets, each character
 * escaped (redactor.ts).
 */
const madeExpressions =
  /^scheduler\/src\/(?:coordination\/redis\/server|http\/console-pages|importers\/servers\/powerjob|schedule\/calendar-interval|schedule\/phrase\/line|access\/secrets\/redactor)\.ts$/;

/** A regular expression is a literal and not made from a text: foreign text might have a meaning in it. */
export const expressionsWritten: Rule = (files) =>
  files
    .filter((file) => published.test(file.path) && !isTest(file) && !madeExpressions.test(file.path))
    .flatMap((file) => find(file, "code", /\bRegExp\s*\(/g, "makes a regular expression"));

/** It leads to the one path of the server that begins a sign-in elsewhere. */
const ownLinks = "console/src/sign-in/sign-in.tsx";

/** The console leads only to places of its own, by the router: no foreign text is used as an address, whose scheme might run it. */
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

/** Every test there is runs, everywhere. */
export const everyTestRuns: Rule = (files) =>
  files
    .filter((file) => isCode(file) && isTest(file))
    .flatMap((file) => find(file, "code", switchedOff, "a test that may not run"));

/** Test files here share a process: see vitest.config.ts. */
const sharing = /^(?:scheduler\/test\/(?:conformance|support)|zookeeper\/test)\//;
const looseHook = /^(?:before|after)(?:All|Each)\b/gm;

/** A file that several tests load is loaded once: a hook at its top level would hold for the first of them alone. */
export const hooksHold: Rule = (files) =>
  files
    .filter((file) => sharing.test(file.path) && !file.path.endsWith(".test.ts"))
    .flatMap((file) => find(file, "code", looseHook, "a hook outside of a function that the test calls"));

const leftOver = /\b(?:TODO|FIXME|XXX|HACK)\b/g;
const prose = /\.(?:md|sh|ya?ml|toml)$|^\.ci\//;

/** Unfinished work belongs in an issue, not in a remark. */
export const nothingLeftOver: Rule = (files) =>
  files.flatMap((file) => {
    if (isCode(file)) return find(file, "comments", leftOver, "unfinished");
    return prose.test(file.path) ? find(file, "text", leftOver, "unfinished") : [];
  });

const emptyCatch = /\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}/g;
const emptyHandler =
  /\.catch\(\s*(?:async\s*)?(?:\([^)]*\)|\w+)\s*=>\s*(?:\{\s*\}|undefined|null|void 0|false)\s*,?\s*\)|\.catch\(\s*(?:noop|\(\)\s*=>\s*\(\s*\{\s*\}\s*\))\s*\)/g;

/** A swallowed error has its reason beside it. */
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
