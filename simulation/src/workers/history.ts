import type { Client } from "../../../scheduler/src/api/client.ts";
import type { Answer } from "../../../scheduler/src/api/contract.ts";
import type { Claim, Claims, Word } from "./claims.ts";

type Run = Answer<"getRun">;

const isFailure = ({ outcome }: Word["verdict"]) => outcome === "failed" || outcome === "stopped";
const numberOf = (result: unknown): unknown => (result as { n?: unknown } | null)?.n;

/** After all runs have ended, compares what users can read of each run with the answers that the workers got. */
export async function checkHistory(claims: Claims, api: () => Client): Promise<void> {
  const seen = new Map<number, Run>();
  const read = async (runId: number): Promise<Run> => {
    const run = seen.get(runId) ?? (await api().getRun({ run: runId }));
    seen.set(runId, run);
    return run;
  };
  for (const [runId, its] of claims.runs) {
    const run = await read(runId);
    checkEnds(claims, run, its);
    for (const claim of its) checkWords(claims, run, claim);
    await checkOnward(claims, run, its, read);
    const lines = its.flatMap((claim) => claim.lines);
    if (lines.length > 0) await checkLines(claims, run, lines, api());
  }
}

/** Checks that no fence ended two attempts, and that a success was reported under the run's fence by a verdict that was not refused. */
function checkEnds(claims: Claims, run: Run, its: readonly Claim[]): void {
  const where = `run ${run.run}`;
  const fences = [...run.attempts.map(({ fence }) => fence), run.fence];
  if (new Set(fences).size !== fences.length)
    claims.broken("a claim ends once", `${where}: a fence ended twice: ${fences.join(", ")}`);
  if (run.state !== "succeeded") return;
  const last = its.find(({ fence }) => fence === run.fence);
  const counted = [...(last?.words.values() ?? [])].find(
    ({ n, verdict }) =>
      verdict.outcome === "succeeded" &&
      (numberOf(run.result) === n || (run.result === null && verdict.result === undefined)),
  );
  if (!counted)
    claims.broken(
      "history says what was accepted",
      `${where}: nobody said ${JSON.stringify(run.result)} under ${run.fence}`,
    );
  else if (counted.late)
    claims.broken("a claim ends once", `${where}: ended by what was refused: ${JSON.stringify(counted.verdict)}`);
}

function checkWords(claims: Claims, run: Run, claim: Claim): void {
  const where = `run ${run.run}, fence ${claim.fence}`;
  const isLast = run.fence === claim.fence;
  for (const { verdict, n, accepted, late } of claim.words.values()) {
    const text = JSON.stringify(verdict);
    if (accepted && verdict.outcome === "succeeded") {
      const isThere =
        isLast && run.state === "succeeded" && (verdict.result === undefined || numberOf(run.result) === n);
      if (!isThere)
        claims.broken("history says what was accepted", `${where} is ${run.state} under ${run.fence}: ${text}`);
    }
    if (accepted && isFailure(verdict)) {
      const ends = [...run.attempts, ...(isLast ? [run] : [])].filter(({ fence }) => fence === claim.fence);
      if (!ends.some(({ error }) => error?.message === verdict.error?.message))
        claims.broken("history says what was accepted", `${where}: no attempt says ${text}`);
    }
    if (late && verdict.outcome !== "released") {
      const outcome = verdict.outcome === "succeeded" ? "succeeded" : "failed";
      const message = verdict.error?.message;
      const isKept = run.late.some(
        (one) =>
          one.fence === claim.fence &&
          one.outcome === outcome &&
          (one.error as { message?: string } | null)?.message === message,
      );
      if (!isKept)
        claims.broken("what was refused is kept as late", `${where}: ${text}; there are ${JSON.stringify(run.late)}`);
    }
  }
}

/** Checks that the follow-up runs of the accepted verdict exist exactly once, and that other verdicts have none. */
async function checkOnward(
  claims: Claims,
  run: Run,
  its: readonly Claim[],
  read: (runId: number) => Promise<Run>,
): Promise<void> {
  const begun = async (relation: "chain" | "join" | "after") =>
    Promise.all(run.relatives.filter((one) => one.relation === relation).map((one) => read(one.run)));
  const last = its.find(({ fence }) => fence === run.fence);
  const counted = [...(last?.words.values() ?? [])].find(
    ({ n, verdict }) => run.state === "succeeded" && verdict.outcome === "succeeded" && numberOf(run.result) === n,
  );
  // A cancellation concerns the run: it may apply to a later claim than the one that the worker had at the request.
  const isCancelling = its.some(({ cancelling }) => cancelling);
  const onward = counted?.verdict.onward;
  const kind = onward && ("join" in onward ? "join" : "chain");
  for (const relation of ["chain", "join"] as const) {
    const made = (await begun(relation)).map(({ payload }) => numberOf(payload));
    const wanted = relation === kind ? [counted?.n] : [];
    const isRight = JSON.stringify(made) === JSON.stringify(wanted) || (isCancelling && made.length === 0);
    if (!isRight)
      claims.broken(
        "what goes on is made once",
        `run ${run.run}, ${relation}: ${JSON.stringify(made)} in place of ${JSON.stringify(wanted)}`,
      );
  }
  const children = run.relatives.filter(({ relation }) => relation === "child");
  // Every spawn of this run used the same key, so it has at most one child.
  if (children.length > 1) claims.broken("what goes on is made once", `run ${run.run} has ${children.length} children`);
  if (run.task !== "before") return;
  const followers = (await begun("after")).length;
  if (followers !== (run.state === "succeeded" ? 1 : 0))
    claims.broken("what goes on is made once", `run ${run.run} is ${run.state}, and ${followers} runs follow it`);
}

async function checkLines(claims: Claims, run: Run, said: readonly string[], api: Client): Promise<void> {
  const kept = new Set<string>();
  let cursor: string | null | undefined;
  do {
    const page: Answer<"listLogs"> = await api.listLogs({ run: run.run, limit: 1_000, ...(cursor ? { cursor } : {}) });
    for (const { message } of page.items) kept.add(message);
    cursor = page.next;
  } while (cursor);
  for (const message of said)
    if (!kept.has(message))
      claims.broken("no part of a poll stops another", `run ${run.run} has no "${message}" in its log`);
}
