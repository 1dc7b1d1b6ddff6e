/**
 * A worker's rules for the programs and variables of commands. The worker's configuration cannot change them, except that it can
 * allow further variables. The functions are pure, so that importers can report violations without a worker.
 */

/** The folders in which a worker looks up a program given without a path. PATH in the worker's or the task's environment is not used. */
export const fixedPath: readonly string[] = [
  "/usr/local/sbin",
  "/usr/local/bin",
  "/usr/sbin",
  "/usr/bin",
  "/sbin",
  "/bin",
];

const shells = new Set(
  "sh bash dash ash ksh ksh93 mksh pdksh zsh fish csh tcsh rbash rksh rzsh yash busybox pwsh nu xonsh elvish".split(
    " ",
  ),
);

/** Returns true if the file name is that of a known shell. A link with another name may still lead to a shell. */
export const isShellName = (file: string): boolean => shells.has(file.slice(file.lastIndexOf("/") + 1));

/**
 * Patterns of values with which the C library opens no file of the task's choice: no locale with a path, no zone outside the system's
 * folder.
 */
const locale = /^[\w.@:+-]*$/;
const zone = /^(?!\/)(?!.*\.\.)[\w+,./<>-]*$/;

/**
 * Returns why a worker refuses a task that sets this variable for a program that is not a shell, as the end of a sentence;
 * undefined if the worker accepts the variable. The worker's configuration can allow further names.
 */
export function whyRefused(name: string, value: string): string | undefined {
  if (/^(?:LANG|LANGUAGE|LC_[A-Z]+|TZ)$/.test(name))
    return (name === "TZ" ? zone : locale).test(value) ? undefined : "has a value that can name a file";
  if (name === "SHELL") {
    const at = value.lastIndexOf("/");
    const known = fixedPath.includes(value.slice(0, at)) && isShellName(value.slice(at));
    return known ? undefined : "is no shell of a system folder";
  }
  if (name !== "PATH") return "is not among those that a task may set";
  const elsewhere = value.split(":").find((folder) => !fixedPath.includes(folder));
  return elsewhere === undefined ? undefined : `leads to ${JSON.stringify(elsewhere)}, not a system folder`;
}

/** Returns true if the text is a pattern for names of variables that tasks may set: a name, or a prefix followed by `*`. */
export const isEnvPattern = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(text);

export const allowsEnv = (patterns: readonly string[], name: string): boolean =>
  patterns.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one));
