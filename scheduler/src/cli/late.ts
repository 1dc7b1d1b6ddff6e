import { CarillonError } from "../base/errors.ts";
import type { ExitCode } from "./exit-codes.ts";

// biome-ignore lint/suspicious/noExplicitAny: each command has other parameters.
type Work = (...given: any[]) => Promise<ExitCode>;

/** Returns a function that loads the command's module at the first call, so that `--help` and completion do not load it. */
export const late = <Name extends string, Module extends Record<Name, Work>>(
  load: () => Promise<Module>,
  name: Name,
): Module[Name] => ((...given) => load().then((module) => module[name](...given))) as Module[Name];

/** Wraps the load of a module that needs an optional peer package. @throws PACKAGE_NEEDED if the package is not installed */
export const withPackage =
  <Module>(name: string, load: () => Promise<Module>): (() => Promise<Module>) =>
  () =>
    load().catch((error: Error & { code?: unknown }) => {
      if (error.code !== "ERR_MODULE_NOT_FOUND" || !error.message.includes(`'${name}'`)) throw error;
      throw new CarillonError("PACKAGE_NEEDED", `this command needs the package ${name}, which is not installed`, {
        hint: `Install it beside carillon: npm install ${name}`,
      });
    });
