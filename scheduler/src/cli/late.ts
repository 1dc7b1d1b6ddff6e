import type { ExitCode } from "./exit-codes.ts";

// biome-ignore lint/suspicious/noExplicitAny: of whatever a command takes.
type Work = (...given: any[]) => Promise<ExitCode>;

/** What a command does, its module loaded when it is used: `--help` and completion wait for none of it. */
export const late = <Name extends string, Module extends Record<Name, Work>>(
  load: () => Promise<Module>,
  name: Name,
): Module[Name] => ((...given) => load().then((module) => module[name](...given))) as Module[Name];
