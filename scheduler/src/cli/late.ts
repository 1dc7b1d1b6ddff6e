import type { ExitCode } from "./exit-codes.ts";

// biome-ignore lint/suspicious/noExplicitAny: of whatever a command takes.
type Work = (...given: any[]) => Promise<ExitCode>;

/** The function of a command, whose module is loaded at its first use, so that `--help` and completion load none. */
export const late = <Name extends string, Module extends Record<Name, Work>>(
  load: () => Promise<Module>,
  name: Name,
): Module[Name] => ((...given) => load().then((module) => module[name](...given))) as Module[Name];
