/**
 * A worker's limits on commands that no configuration can lift. Pure functions, so that importers can report violations without a worker.
 */

/** The folders in which a program given without a path is looked up, instead of PATH in the worker's or the task's environment. */
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

/** Decided by the file name alone; a link with another name may still lead to a shell. */
export const isShellName = (file: string): boolean => shells.has(file.slice(file.lastIndexOf("/") + 1));

/** Values that make the C library open no file: no locale with a path, no zone outside the system's folder of zones. */
const locale = /^[\w.@:+-]*$/;
const zone = /^(?!\/)(?!.*\.\.)[\w+,./<>-]*$/;

/**
 * Returns the reason why a worker does not pass this variable of a task to a program that is not a shell, unless the worker's configuration
 * allows the name; undefined: the variable is passed.
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

/** True for a pattern of variables that a worker lets tasks set: a name, or a prefix and `*`. */
export const isEnvPattern = (text: string): boolean => /^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(text);

export const allowsEnv = (patterns: readonly string[], name: string): boolean =>
  patterns.some((one) => (one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one));
