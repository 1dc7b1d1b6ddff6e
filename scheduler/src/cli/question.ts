import { createInterface } from "node:readline";

/** True if standard input and output are terminals, so that a person can read a question and answer it. */
export const isWatched = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Asks for confirmation on the terminal. Ctrl-D and an empty line mean no; Ctrl-C or the signal returns "interrupted". */
export async function askToGoOn(signal: AbortSignal): Promise<"yes" | "no" | "interrupted"> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const interrupted = new Promise<undefined>((resolve) => {
    lines.once("SIGINT", () => resolve(undefined));
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const answered = new Promise<string>((resolve) => {
    lines.question("Go on? [y/N] ", resolve);
    lines.once("close", () => resolve(""));
  });
  const answer = await Promise.race([interrupted, answered]).finally(() => lines.close());
  if (answer === undefined) {
    process.stdout.write("\n");
    return "interrupted";
  }
  return /^y(?:es)?$/i.test(answer.trim()) ? "yes" : "no";
}
