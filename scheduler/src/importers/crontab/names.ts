/**
 * Makes names for imported tasks. A name is the task's identity in the store, so it must not depend on line numbers or on the
 * order of the lines. A name consists of the file's name and the program's name. If two names collide, the arguments are added to
 * both; if they still collide, a hash of the entry's content is added. Entries whose names collide even then, such as identical
 * lines, get a number.
 */
import { limits } from "../../base/limits.ts";
import { textHash } from "./text-hash.ts";

export interface Nameable {
  /** The command as text. */
  command: string;
  /** A text that differs between entries with the same command, for example because it includes the entry's time. */
  identity: string;
}

/** @param prefix as returned by `namePrefix` */
export function nameTasks(prefix: string, entries: readonly Nameable[]): string[] {
  const forms = entries.map((entry) => {
    const { program, args } = mainProgram(entry.command, prefix);
    const short = joined(prefix, program);
    const long = joined(short, slug(args.join("-")).slice(0, 60));
    return [short, long, `${long}-${textHash(entry.identity).toString(36).padStart(7, "0").slice(0, 6)}`] as const;
  });
  const detail = entries.map(() => 0);
  const nameAt = (at: number) => (forms[at] as readonly string[])[detail[at] as number] as string;
  for (let collided = true; collided; ) {
    collided = false;
    const sharers = new Map<string, number[]>();
    for (const at of entries.keys()) {
      const group = sharers.get(nameAt(at));
      if (group) group.push(at);
      else sharers.set(nameAt(at), [at]);
    }
    for (const group of sharers.values()) {
      if (group.length < 2) continue;
      for (const at of group) {
        if ((detail[at] as number) === 2) continue;
        detail[at] = (detail[at] as number) + 1;
        collided = true;
      }
    }
  }
  const used = new Set<string>();
  // The next number to try for each name, so that thousands of identical entries do not each search from the beginning.
  const counts = new Map<string, number>();
  return entries.map((_, at) => {
    const base = nameAt(at);
    let name = base;
    let count = counts.get(base) ?? 2;
    for (; used.has(name); count++) name = `${base}-${count}`;
    counts.set(base, count);
    used.add(name);
    return name;
  });
}

/** Returns the prefix of the names of a file's tasks, such as "php" for the path "/etc/cron.d/php". */
export function namePrefix(path: string): string {
  const base = path.slice(path.lastIndexOf("/") + 1).replace(/\.(?:crontab|cron|tab|txt)$/i, "");
  return slug(base).slice(0, 60) || "crontab";
}

function joined(first: string, second: string): string {
  if (second === "" || second === first) return first;
  if (second.startsWith(`${first}-`) || second.startsWith(`${first}.`)) return second;
  return `${first}-${second}`.slice(0, limits.taskNameLength - 20);
}

function slug(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9._]+/g, "-")
    .replace(/[-._]{2,}/g, "-")
    .replace(/^[-._]+|[-._]+$/g, "");
}

/** Words that start a command but are not its main program. */
const lead = new Set("if then elif else do while until ! exec sudo nohup setsid chronic time eatmydata".split(" "));
/** Commands that only test or prepare something. */
const aside = new Set("cd test [ [[ command for case fi done esac true : export set umask sleep . source".split(" "));
/** Programs whose first plain argument is the program that they run. */
const launchers = new Set(
  "nice ionice env timeout flock sh bash dash perl php python python2 python3 ruby node java systemd-cat".split(" "),
);

/** Guesses the main program of a command line with any shell syntax around it. Equal command lines give equal results. */
function mainProgram(command: string, prefix: string): { program: string; args: string[] } {
  const candidates = segments(command)
    .map((words) => programOf(words))
    .filter((candidate) => candidate !== null);
  const related = candidates.find(({ program }) => program.startsWith(prefix));
  return related ?? candidates[0] ?? { program: "", args: [] };
}

function segments(command: string): string[][] {
  return withoutSubstitutions(command)
    .replace(/'[^']*'|"[^"]*"/g, (quoted) => (/^.[\w./:$@%+,=-]*.$/.test(quoted) ? quoted.slice(1, -1) : "_"))
    .replace(/\d?>+&?\s*\S+|<\s*\S+/g, " ")
    .split(/[;|&(){}`\n]+/)
    .map((segment) => segment.split(/\s+/).filter((word) => word !== "" && !/^[A-Za-z_]\w*=/.test(word)));
}

/** Replaces each `$( … )` and `${ … }`, including nested ones, by `_`. */
function withoutSubstitutions(command: string): string {
  let kept = "";
  let depth = 0;
  for (let at = 0; at < command.length; at++) {
    const char = command[at] as string;
    if (depth > 0) {
      if (char === "(" || char === "{") depth++;
      else if (char === ")" || char === "}") depth--;
    } else if (char === "$" && (command[at + 1] === "(" || command[at + 1] === "{")) {
      depth = 1;
      at++;
      kept += "_";
    } else {
      kept += char;
    }
  }
  return kept;
}

function programOf(given: readonly string[]): { program: string; args: string[] } | null {
  let words = [...given];
  while (lead.has(words[0] ?? "")) words = words.slice(1);
  if (words[0] === undefined || aside.has(words[0])) return null;
  let program = baseName(words[0]);
  while (launchers.has(program)) {
    const plains = [...words.keys()].filter((at) => at > 0 && !/^[-\d]/.test(words[at] as string));
    // The first argument of flock is its lock file, so the program that flock runs is the second.
    const plain = plains[program === "flock" ? 1 : 0] ?? -1;
    const inline = words.some((word, at) => at < plain && /^-[a-z]*[cer]$/.test(word));
    if (plain < 0 || inline) break;
    words = words.slice(plain);
    program = baseName(words[0] as string);
  }
  if (slug(program) === "") return null;
  return {
    program: slug(program).slice(0, 60),
    args: words
      .slice(1, 5)
      .map(baseName)
      .filter((word) => word !== ""),
  };
}

function baseName(word: string): string {
  const trimmed = word.replace(/\/+$/, "");
  return trimmed.slice(trimmed.lastIndexOf("/") + 1);
}
