import type { GivenRun, PollAnswer, Refusal } from "../../../scheduler/src/api/worker-protocol.ts";
import { type ClaimPart, type ClaimState, claimStandingTable } from "../../../scheduler/src/api/worker-table.ts";
import { errorCodes } from "../../../scheduler/src/base/errors.ts";
import type { Violation } from "../history.ts";
import { type Rule, textOf, type Verdict } from "./said.ts";

/** A verdict that the worker sent for a claim, and what the servers' answers to it were so far. */
export interface Word {
  readonly verdict: Verdict;
  /** The verdict's own number. It is part of the verdict's content, so that the run's history shows which verdict counted. */
  readonly n: number;
  /** True if at least one answer did not refuse the verdict. */
  accepted: boolean;
  /** True if the answer to a poll with no other verdict on the claim refused this verdict as too late. */
  late: boolean;
}

/** A claim, as its worker knows it. */
export interface Claim {
  readonly runId: number;
  readonly fence: number;
  readonly task: string;
  readonly worker: string;
  /** All sent verdicts that may have counted, by their JSON text. */
  readonly words: Map<string, Word>;
  /** True if the claim's session may have ended, so that the claim may have been reclaimed. */
  doubtful: boolean;
  /** True if the harness may have requested a cancellation of the run. */
  cancelling: boolean;
  /** Messages of log lines that a server acknowledged. */
  readonly lines: string[];
}

/** A claim that a poll mentions. */
export interface Named {
  readonly runId: number;
  readonly fence: number;
  /** The claim; undefined if no worker ever got it. */
  readonly claim: Claim | undefined;
  readonly mine: boolean;
}

export interface SaidVerdict extends Named {
  readonly verdict: Verdict;
  readonly n: number;
  /** True if the verdict contains a number that a double cannot represent exactly. */
  readonly inexact: boolean;
  /** True if another part of the poll is invalid and makes the server refuse this verdict too. */
  readonly beside: boolean;
  /** Whether earlier answers had accepted this verdict, or refused it as late, when the poll was sent. */
  readonly before: { accepted: boolean; late: boolean };
}

export interface SaidPart extends Named {
  readonly part: Exclude<Refusal["part"], "verdict">;
  /** True if the part is invalid, so that the server must refuse it in every state of the claim. */
  readonly wrong: boolean;
  readonly message?: string;
  /** True if a verdict on the claim had been accepted when the poll was sent. */
  readonly over: boolean;
}

export interface SentPoll {
  readonly worker: string;
  readonly verdicts: readonly SaidVerdict[];
  readonly parts: readonly SaidPart[];
  readonly holds: readonly Named[];
}

const isErrorCode = (answer: string) => Object.hasOwn(errorCodes, answer);
const claimOf = ({ runId, fence }: { runId: number; fence: number }) => `${runId} ${fence}`;

/** Checks the servers' answers against the protocol's table in scheduler/src/api/worker-table.ts. */
export class Claims {
  readonly all = new Map<string, Claim>();
  readonly violations: Violation[] = [];
  readonly #byRun = new Map<number, readonly Claim[]>();

  broken(invariant: Rule, what: string): void {
    this.violations.push({ invariant, what });
  }

  get runs(): ReadonlyMap<number, readonly Claim[]> {
    return this.#byRun;
  }

  find(runId: number, fence: number): Claim | undefined {
    return this.all.get(claimOf({ runId, fence }));
  }

  /** Records that this worker's claims may be reclaimed from now on. */
  doubt(worker: string): void {
    for (const claim of this.all.values()) if (claim.worker === worker) claim.doubtful = true;
  }

  given(run: GivenRun, worker: string): Claim {
    const known = this.find(run.runId, run.fence);
    if (known) {
      if (known.worker !== worker)
        this.broken(
          "a claim is one worker's",
          `run ${run.runId}, fence ${run.fence}: of ${known.worker}, given to ${worker}`,
        );
      return known;
    }
    const its = this.#byRun.get(run.runId) ?? [];
    for (const other of its)
      if (other.words.size === 0 && !other.doubtful)
        this.broken(
          "a claim is one worker's",
          `run ${run.runId} is claimed under ${other.fence} and ${run.fence} at once`,
        );
    const { runId, fence, task } = run;
    const claim: Claim = {
      runId,
      fence,
      task,
      worker,
      words: new Map(),
      doubtful: false,
      cancelling: false,
      lines: [],
    };
    this.all.set(claimOf(claim), claim);
    this.#byRun.set(runId, [...its, claim]);
    return claim;
  }

  /** Records that a poll is being sent: its verdicts may count from now on. */
  sent({ verdicts }: SentPoll): void {
    for (const { claim, mine, verdict, n, inexact, beside } of verdicts)
      if (claim && mine && !inexact && !beside && !claim.words.has(textOf(verdict)))
        claim.words.set(textOf(verdict), { verdict, n, accepted: false, late: false });
  }

  answered(poll: SentPoll, answer: PollAnswer): void {
    const refused = new Map<string, Refusal[]>();
    for (const one of answer.refused) {
      const key = `${one.part} ${claimOf(one)}`;
      refused.set(key, [...(refused.get(key) ?? []), one]);
      if (one.message === "" || one.status < 400 || one.status > 499)
        this.broken("a refusal is said, with its reason", JSON.stringify(one));
    }
    const byClaim = new Map<string, SaidVerdict[]>();
    for (const said of poll.verdicts) byClaim.set(claimOf(said), [...(byClaim.get(claimOf(said)) ?? []), said]);
    for (const [claim, verdicts] of byClaim) this.#verdicts(verdicts, refused.get(`verdict ${claim}`) ?? []);
    for (const said of poll.parts) this.#part(said, refused.get(`${said.part} ${claimOf(said)}`) ?? []);
    const named = new Set([...poll.verdicts, ...poll.parts].map(claimOf));
    for (const one of answer.refused)
      if (!named.has(claimOf(one)))
        this.broken("nothing is refused without a cause", `not asked: ${JSON.stringify(one)}`);
    for (const { claim, mine, fence } of poll.holds) {
      const held = claim && mine && claim.words.size === 0 && !claim.doubtful;
      if (held && answer.lost.includes(fence))
        this.broken("nothing is refused without a cause", `run ${claim.runId}, fence ${fence} is held, and in lost`);
      if (!(claim && mine) && !answer.lost.includes(fence))
        this.broken("a refusal is said, with its reason", `fence ${fence} is not the worker's, and not in lost`);
    }
  }

  /** Checks the answer to one poll for its verdicts on one claim. Only the first of these verdicts can be accepted. */
  #verdicts(verdicts: readonly SaidVerdict[], refused: readonly Refusal[]): void {
    const [first] = verdicts as [SaidVerdict];
    const where = `run ${first.runId}, fence ${first.fence}`;
    const codes = new Set(refused.map(({ code }) => code));
    if (refused.length < verdicts.length - 1) {
      this.broken(
        "a refusal is said, with its reason",
        `${where}: ${verdicts.length} verdicts in one poll, ${refused.length} refused`,
      );
      return;
    }
    const isAccepted = refused.length < verdicts.length;
    const allowed = this.#codes(first, first.verdict.outcome === "released" ? "release" : "verdict");
    if (first.inexact) allowed.add("PAYLOAD_NOT_JSON");
    if (first.beside) allowed.add("REQUEST_INVALID");
    // Verdicts after the first one are refused as late in every state of the claim.
    for (const code of codes)
      if (!allowed.has(code) && !(verdicts.length > 1 && code === "FENCE_STALE"))
        this.broken(
          "nothing is refused without a cause",
          `${where}: refused with ${code}, ${[...allowed].join(" or ")} would do`,
        );
    if (first.inexact || first.beside || !first.claim || !first.mine) {
      if (isAccepted)
        this.broken("a refusal is said, with its reason", `${where}: not refused: ${JSON.stringify(first.verdict)}`);
      return;
    }
    const { claim, verdict } = first;
    const word = claim.words.get(textOf(verdict)) as Word;
    if (isAccepted) {
      const other = [...claim.words.values()].find((one) => one !== word && one.accepted);
      if (other)
        this.broken("a claim ends once", `${where}: both were accepted: ${textOf(other.verdict)}, ${textOf(verdict)}`);
      if (first.before.late)
        this.broken(
          "the same verdict has the same answer",
          `${where}: accepted, and refused before: ${textOf(verdict)}`,
        );
      word.accepted = true;
      return;
    }
    // After the run of a released claim is claimed again, the store has no record of the released claim.
    const forgotten = [...claim.words.values()].some((one) => one.verdict.outcome === "released");
    if (first.before.accepted && !forgotten)
      this.broken("the same verdict has the same answer", `${where}: refused, and accepted before: ${textOf(verdict)}`);
    if (claim.words.size === 1 && !claim.doubtful && !forgotten)
      this.broken(
        "nothing is refused without a cause",
        `${where}: the only verdict is refused: ${JSON.stringify(refused[0])}`,
      );
    if (verdicts.length === 1 && codes.has("FENCE_STALE")) word.late = true;
  }

  #part(said: SaidPart, refused: readonly Refusal[]): void {
    const { claim, mine, part, wrong, over, message } = said;
    const where = `run ${said.runId}, fence ${said.fence}: ${part}`;
    const allowed = this.#codes(said, part === "secret" ? "inputs" : part);
    if (wrong) for (const code of ["PAYLOAD_NOT_JSON", "TASK_UNKNOWN"]) allowed.add(code);
    for (const { code } of refused)
      if (!allowed.has(code))
        this.broken(
          "nothing is refused without a cause",
          `${where} refused with ${code}, ${[...allowed].join(" or ")} would do`,
        );
    const mustBe = wrong || !(claim && mine) || (over && part !== "log");
    if (mustBe && refused.length === 0) this.broken("a refusal is said, with its reason", `${where} is not refused`);
    if (
      part === "log" &&
      claim &&
      mine &&
      message !== undefined &&
      !refused.some(({ code }) => code !== "PAYLOAD_NOT_JSON")
    )
      claim.lines.push(message);
  }

  /** Returns the error codes with which the protocol's table refuses this part, in any state that the claim may have. */
  #codes({ claim, mine }: Named, event: ClaimPart): Set<string> {
    const states: ClaimState[] = [];
    if (!claim) states.push("unknown");
    // A claim that another worker has released has no owner, so the store does not know it.
    else if (!mine) states.push("foreign", "unknown");
    else {
      states.push("held");
      if (claim.words.size > 0) states.push("ended");
      // A doubtful claim may be unchanged, reclaimed, or reclaimed before it was started.
      if (claim.doubtful) states.push("lost", "foreign", "released", "unknown");
      if ([...claim.words.values()].some(({ verdict }) => verdict.outcome === "released"))
        states.push("released", "unknown");
    }
    // The store has no record of a released claim once its run is claimed again, but the server caches the claim for some seconds.
    const remembered = states.includes("released") ? ["FENCE_STALE"] : [];
    const codes = states.flatMap((state) => {
      const [, answer] = claimStandingTable[state][event];
      return answer === "late" ? ["FENCE_STALE"] : answer !== null && isErrorCode(answer) ? [answer] : [];
    });
    return new Set([...codes, ...remembered]);
  }
}
