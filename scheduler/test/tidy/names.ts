import { partsOf } from "./code.ts";
import { at, isCode, type Rule } from "./tree.ts";

const longest = 500;

/** Rule: a file has at most `longest` lines. */
export const smallFiles: Rule = (files) =>
  files.filter(isCode).flatMap((file) => {
    const lines = file.text.split("\n").length - 1;
    return lines > longest ? [`${file.path}:${lines} has more than ${longest} lines`] : [];
  });

const vagueNames = new Set("util utils helper helpers common lib types interfaces manager managers impl".split(" "));

/** Rule: a file or folder is named after its technology or its role, not with a vague word such as "utils". */
export const tellingPaths: Rule = (files) =>
  files.flatMap(({ path }) => {
    const words = path.split(/[/.\-_]/).map((word) => word.toLowerCase());
    return words
      .filter((word) => vagueNames.has(word))
      .map((word) => `${path}:1 is called ${word}, which tells nothing`);
  });

/** Words that the glossary excludes, each with its replacement. */
const givenUp = new Map([
  ["job", "task or run"],
  ["jobs", "tasks or runs"],
  ["manager", "what it does"],
  ["managers", "what they do"],
  ["util", "what it does"],
  ["utils", "what they do"],
]);

/** Beginnings of names that other projects chose: peers, the formats that the importers read, and OpenTelemetry. */
const foreign =
  /^(?:CronJobs?|cronJobs?|XxlJobs?|xxlJobs?|JobDetails?|ScheduledJobs?|AsyncLocalStorageContextManager|setGlobalContextManager)/;

/** Splits an identifier into its words: "cronJobName" becomes cron, job, name. */
function wordsOf(identifier: string): string[] {
  return identifier
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[\s_$]+/);
}

/** Files in which peers keep their own names. */
const ofPeers = /^(?:(?:bench|faults\/src\/peers\/subjects)\/|examples\/ports\/[\w.-]+\.mjs$)/;

/** Rule: no identifier contains a word that the glossary excludes, and no type is called a lease. */
export const oneWordPerIdea: Rule = (files) =>
  files
    .filter((file) => isCode(file) && !ofPeers.test(file.path))
    .flatMap((file) => {
      const { code } = partsOf(file.text);
      const wrong: string[] = [];
      for (const match of code.matchAll(/[A-Za-z_$][\w$]*/g)) {
        if (foreign.test(match[0])) continue;
        const word = wordsOf(match[0]).find((word) => givenUp.has(word));
        if (word) wrong.push(at(file, match.index, `${match[0]}: not ${word}, but ${givenUp.get(word)}`));
      }
      for (const match of code.matchAll(/\b(?:type|interface|class)\s+(\w*Lease\w*)/g)) {
        wrong.push(at(file, match.index, `${match[1]}: a timed right is a claim, a lock or a session`));
      }
      return wrong;
    });

/** Matches what the rule below allows: names of other projects, quoted words, and two phrases. */
const named = /XXL-JOB|CronJobs?|JobRunr|jobs?_id|"job"|`job`|\*job\*|`\w*jobs?\w*`|cron jobs?|main job/gi;

/**
 * Rule: the docs do not use the excluded word for tasks and runs, except in the glossary and on the pages for users of other
 * schedulers, which need it.
 */
export const oneWordInProse: Rule = (files) =>
  files
    .filter(({ path }) =>
      /^(?:README|CHANGELOG|docs\/(?!explain\/glossary|(?:zh\/)?guide\/from-).*)(?:\.md)$/.test(path),
    )
    .flatMap((file) => {
      const text = file.text.replace(named, (name) => " ".repeat(name.length));
      return [...text.matchAll(/\bjobs?\b/gi)].map((match) => at(file, match.index, "job: not job, but task or run"));
    });

/** The habits that make a comment hard to read at first sight, each with its cure. */
const habits: readonly (readonly [RegExp, string])[] = [
  [/(?:\/\*\*|\/\/) Of /g, "begin with its noun"],
  [/[.!?]\s+(?:(?:\*|\/\/)\s+)?(?:Of|What|Whoever|Whether) /g, "begin the sentence with its noun"],
  [/\b(?:nobody|whoever|somebody|anybody)\b/gi, "name the actor"],
  [/\bkn(?:ow|ows|ew|own)\s+(?:\*\s+|\/\/\s+)?of\b/gi, "say what has been read, cached or received"],
  [/\bso (?:many|long|often)\b(?![^.;]*\bthat\b)/gi, "name the number"],
];
/** Texts of comments that contain a habit's words as names. */
const namesInComments = /`[^`]*`|"[^"]*"/g;

/** Rule: comments have none of the countable habits of `habits`. */
export const commentsPlain: Rule = (files) =>
  files.filter(isCode).flatMap((file) => {
    const comments = partsOf(file.text).comments.replace(namesInComments, (name) => name.replace(/[^\n]/g, " "));
    return habits.flatMap(([habit, cure]) =>
      [...comments.matchAll(habit)].map((match) => at(file, match.index, `"${match[0].trim()}" in a comment: ${cure}`)),
    );
  });
