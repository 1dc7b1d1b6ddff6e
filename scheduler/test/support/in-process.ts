import { PassThrough } from "node:stream";
import { main } from "../../src/cli/program.ts";

export interface Said {
  code: number;
  stdout: string;
  stderr: string;
}

/**
 * Runs a command line in this process, which is quicker than starting a process and has the same output. Only one command line
 * may run at a time, because the function replaces the process's output streams and environment meanwhile.
 */
export async function inProcess(args: string[], environment: Record<string, string> = {}): Promise<Said> {
  const { stdout, stderr } = process;
  const [out, err] = [stdout.write, stderr.write];
  const before = { ...process.env };
  const said = { stdout: "", stderr: "" };
  const hear =
    (stream: keyof typeof said) =>
    (text: string | Uint8Array): boolean => {
      said[stream] += text;
      return true;
    };
  for (const name of Object.keys(process.env)) if (/^(CARILLON_|DATABASE_URL)/.test(name)) delete process.env[name];
  Object.assign(process.env, { NO_COLOR: "1", ...environment });
  stdout.write = hear("stdout") as typeof stdout.write;
  stderr.write = hear("stderr") as typeof stderr.write;
  try {
    return { code: await main(args), ...said };
  } finally {
    stdout.write = out;
    stderr.write = err;
    process.env = before;
  }
}

/** Runs a command line with this text, followed by a newline, on its standard input. */
export async function typed(text: string, args: string[], environment: Record<string, string>) {
  const pipe = new PassThrough();
  pipe.end(`${text}\n`);
  return reading(pipe, args, environment);
}

/** Runs a command line at a simulated terminal. Each time the command reads, the next line of `lines` is typed. */
export async function answered(lines: string[], args: string[], environment: Record<string, string>) {
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  const rest = [...lines];
  terminal.on("resume", () => {
    const line = rest.shift();
    if (line !== undefined) terminal.write(`${line}\n`);
  });
  return reading(terminal, args, environment);
}

async function reading(input: PassThrough, args: string[], environment: Record<string, string>): Promise<Said> {
  const { stdin } = process;
  Object.defineProperty(process, "stdin", { configurable: true, value: input });
  try {
    return await inProcess(args, environment);
  } finally {
    Object.defineProperty(process, "stdin", { configurable: true, value: stdin });
  }
}
