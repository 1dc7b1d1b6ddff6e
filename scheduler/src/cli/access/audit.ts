import { once } from "node:events";
import { type AuditChain, ChainCheck, type ChainPlace, parsePlace, placeText } from "../../access/audit-chain.ts";
import { isoTime } from "../../api/run-json.ts";
import { parseDuration } from "../../base/duration.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Cluster } from "../nodes/cluster.ts";
import { operator } from "../operator.ts";
import { requireStore, withCluster } from "../reach.ts";
import type { Terminal } from "../screen/terminal.ts";
import { plain } from "../screen/text.ts";
import { type CommonOptions, withStore } from "../store-choice.ts";
import { AuditFile, type ChainLine, firstLine, lastLine, rowLine } from "./audit-file.ts";

/** Rows younger than this many ms are never pruned. */
const leastAgeMs = 86_400_000;

export interface VerifyOptions extends CommonOptions {
  head?: string;
}

async function* linesOf({ audit }: Cluster): AsyncIterable<ChainLine> {
  for await (const content of audit.older()) yield { place: null, content };
  for await (const { content, ...place } of audit.chained()) yield { place, content };
}

/** Checks the rows against the chain. @param each called with each row in turn */
async function checked(
  chain: AuditChain,
  lines: AsyncIterable<ChainLine>,
  head: ChainPlace | null,
  each: (line: ChainLine) => Promise<void> = async () => undefined,
): Promise<ReturnType<ChainCheck["end"]>> {
  const check = new ChainCheck(chain, head);
  for await (const line of lines) {
    if (line.place === null) check.older(line.content);
    else check.row({ ...line.place, content: line.content });
    await each(line);
  }
  return check.end();
}

/** Verifies an audit. @param file the path of an exported audit; undefined: the audit of the store or server is verified */
export async function verifyAudit(
  file: string | undefined,
  options: VerifyOptions,
  terminal: Terminal,
): Promise<ExitCode> {
  const head = options.head === undefined ? null : parsePlace(options.head, "--head");
  if (file !== undefined) {
    const read = new AuditFile(file);
    const found = await checked(await read.chain(), read.rows(), head);
    const cut = read.end === null || read.end.seq !== found.head.seq || read.end.hash !== found.head.hash;
    const fault =
      found.fault ?? (cut ? { seq: null, what: "the file's last line is missing or names another row" } : null);
    return tell({ ...found, fault }, terminal);
  }
  return withCluster(options, async ({ cluster }) => {
    for (;;) {
      const chain = await cluster.audit.chain();
      const found = await checked(chain, linesOf(cluster), head);
      const { anchor, olderRows } = found.fault ? await cluster.audit.chain() : chain;
      // If rows were pruned during the check, repeat it, because the pruned rows would look like missing ones.
      if (anchor.seq === chain.anchor.seq && olderRows === chain.olderRows) return tell(found, terminal);
    }
  });
}

function tell({ head, rows, olderRows, fault }: ReturnType<ChainCheck["end"]>, terminal: Terminal): ExitCode {
  if (terminal.json) terminal.object({ holds: fault === null, rows, olderRows, head: placeText(head), fault });
  else {
    const { style } = terminal;
    const older = olderRows === 0 ? "" : `, and ${olderRows} from before the chain`;
    if (fault) terminal.line(`${style.bad("the audit does not hold:")} ${plain(fault.what)}`);
    else terminal.line(`${style.good("the audit holds:")} ${rows} rows${older}`);
    terminal.line(`${fault ? "the last row that fits" : "head"}: ${placeText(head)}`);
  }
  return fault ? exitCodes.problems : exitCodes.ok;
}

/**
 * Exports the audit to stdout and checks the rows up to the first fault, which it reports. The row with the fault and the rows after it are
 * exported too.
 */
export function exportAudit(options: CommonOptions, terminal: Terminal): Promise<ExitCode> {
  const write = async (line: string) => {
    if (!process.stdout.write(`${line}\n`)) await once(process.stdout, "drain");
  };
  return withCluster(options, async ({ cluster }) => {
    const chain = await cluster.audit.chain();
    await write(firstLine(chain));
    const found = await checked(chain, linesOf(cluster), null, (line) => write(rowLine(line)));
    await write(lastLine(found.head));
    if (found.fault === null) return exitCodes.ok;
    process.stderr.write(`${terminal.errorStyle.bad("the audit does not hold:")} ${plain(found.fault.what)}\n`);
    return exitCodes.problems;
  });
}

export function pruneAudit(
  age: string,
  options: CommonOptions & { reason?: string },
  terminal: Terminal,
): Promise<ExitCode> {
  requireStore(options, "audit prune");
  const olderMs = parseDuration(age, "age", leastAgeMs);
  return withStore(options, async ({ store, nowMs }) => {
    const beforeMs = nowMs() - olderMs;
    let removed = 0;
    for (let some = -1; some !== 0; ) {
      some = await store.audit.prune(beforeMs, { author: operator(), reason: options.reason ?? "", nowMs: nowMs() });
      removed += some;
    }
    const { anchor } = await store.audit.chain();
    if (terminal.json) terminal.object({ removed, before: isoTime(beforeMs), anchor: placeText(anchor) });
    else
      terminal.line(
        `${removed} rows from before ${isoTime(beforeMs)} are removed; the rest is checked from ${placeText(anchor)}`,
      );
    return exitCodes.ok;
  });
}
