import { createInterface } from "node:readline";

/** Somebody sits there who reads what is asked, and can answer. */
export const isWatched = (): boolean => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Asks on the terminal. Ctrl-D is a no, as an empty line is; Ctrl-C, or a signal, is for the command to end by. */
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
