/** What a worker holds against a command whatever its configuration allows. Pure: importers tell of it before there is a worker. */

/** Where programs given without a path are looked up: never in the worker's environment or the task's. */
export const fixedPath: readonly string[] = [
  ...["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"],
];

const shells = new Set(
  "sh bash dash ash ksh ksh93 mksh pdksh zsh fish csh tcsh rbash rksh rzsh yash busybox pwsh nu xonsh elvish".split(
    " ",
  ),
);

/** By its name alone: a link of any other name may lead to one. */
export const isShellName = (file: string): boolean => shells.has(file.slice(file.lastIndexOf("/") + 1));

/**
 * Variables by which the loader, an interpreter or a shell takes code from elsewhere. With them, any allowed program
 * would be every program. The list cannot be complete (programs have their own), so it is a second wall, not the first.
 */
const loading =
  /^(?:LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|BASH_ENV|ENV|BASH_FUNC.*|SHELLOPTS|BASHOPTS|PS4|IFS|PROMPT_COMMAND|NODE_OPTIONS|NODE_PATH|PERL5OPT|PERL5LIB|PERLLIB|PERL5DB|PYTHON.*|RUBYOPT|RUBYLIB|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|CLASSPATH|LUA_INIT.*|PHPRC|PHP_INI_SCAN_DIR|GIT_SSH.*|GIT_EXEC_PATH|GIT_CONFIG.*|EDITOR|VISUAL|PAGER)$/;

/** Why no program but a shell may be given the variable by its task; undefined: it may. */
export function whyRefused(name: string, value: string): string | undefined {
  if (loading.test(name)) return "can make a program load other code";
  if (name !== "PATH") return undefined;
  const elsewhere = value.split(":").find((folder) => !fixedPath.includes(folder));
  return elsewhere === undefined ? undefined : `leads to ${JSON.stringify(elsewhere)}, not a system folder`;
}
