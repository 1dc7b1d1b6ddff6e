import { request } from "node:http";
import type { GivenVerdict, PollAnswer, PollRequest, Problem } from "../../../scheduler/src/api/worker-protocol.ts";
import { pause, systemClock } from "../../../scheduler/src/base/clock.ts";
import type { Dice } from "../plan/dice.ts";
import type { Claim, Claims, Named, SaidPart, SaidVerdict, SentPoll } from "./claims.ts";
import type { ServerNode } from "./nodes.ts";
import { textOf, type Verdict } from "./said.ts";

/** Numbers that JSON.stringify cannot write, by the placeholder strings that they replace in a poll's JSON. */
const inexactTexts = { '"LARGE"': "12345678901234567890", '"ENDLESS"': "1e400" };

export interface Outcome {
  /** The HTTP status; 0 if the server did not answer. */
  status: number;
  body: Partial<PollAnswer & Problem>;
}

/** Sends polls to servers that may go down while they answer. */
export class Wire {
  readonly #open = new Map<ServerNode, Set<() => void>>();
  polls = 0;
  readonly statuses = new Map<number, number>();

  /** Destroys the connections of all clients of this server, so that they read no further answers. */
  cut(node: ServerNode): void {
    for (const cut of this.#open.get(node) ?? []) cut();
  }

  /** @param loseAfterMs destroys the connection this long after the poll was sent; undefined: the client waits for the answer */
  async post(node: ServerNode, key: string, body: object, loseAfterMs?: number): Promise<Outcome> {
    const { url } = node;
    if (url === undefined) return { status: 0, body: {} };
    this.polls++;
    let text = JSON.stringify(body);
    for (const [word, number] of Object.entries(inexactTexts)) text = text.replaceAll(word, number);
    const outcome = await new Promise<Outcome>((resolve) => {
      const none = () => resolve({ status: 0, body: {} });
      const call = request(`${url}/v1/worker/poll`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      });
      const cut = () => call.destroy();
      const cuts = this.#open.get(node) ?? new Set();
      this.#open.set(node, cuts.add(cut));
      const cancel = loseAfterMs === undefined ? () => undefined : systemClock.after(loseAfterMs, cut);
      call.once("close", () => {
        cuts.delete(cut);
        cancel();
        none();
      });
      call.on("error", none);
      call.on("response", (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (part) => {
          answer += part;
        });
        response.on("error", none);
        response.on("end", () => {
          if (response.complete) resolve({ status: response.statusCode ?? 0, body: JSON.parse(answer) });
        });
      });
      call.end(text);
    });
    this.statuses.set(outcome.status, (this.statuses.get(outcome.status) ?? 0) + 1);
    return outcome;
  }
}

export interface Crew {
  readonly nodes: readonly ServerNode[];
  readonly wire: Wire;
  readonly claims: Claims;
  readonly dice: Dice;
  /** Returns a number that no other verdict has. */
  next(): number;
}

export interface WorkerOptions {
  readonly name: string;
  readonly key: string;
  /** The session timeout (ms) of a worker that sometimes sends nothing for longer; undefined for workers that always send. */
  readonly silentAfterMs: number | undefined;
}

const steadyTimeoutMs = 60_000;
const waitMostMs = 150;
/** A worker's polls mention only its last 30 claims. */
const remembered = 30;

/** A worker that sends valid and invalid polls to random servers, sometimes two at a time or the same one twice. */
export class RandomWorker {
  readonly name: string;
  readonly key: string;
  readonly #crew: Crew;
  readonly #silentAfterMs: number | undefined;
  #session = 0;
  #joining: Promise<void> | undefined;
  #joins = 0;
  readonly mine: Claim[] = [];
  /** True once the worker's key is being revoked; set before the request is sent. */
  revoking = false;
  /** Servers that have confirmed the revocation of the key, and must refuse it. */
  readonly revokedAt = new Set<ServerNode>();

  constructor(crew: Crew, { name, key, silentAfterMs }: WorkerOptions) {
    this.#crew = crew;
    this.name = name;
    this.key = key;
    this.#silentAfterMs = silentAfterMs;
  }

  get #timeoutMs(): number {
    return this.#silentAfterMs ?? steadyTimeoutMs;
  }

  #node(): ServerNode {
    const { dice, nodes } = this.#crew;
    return dice.one(nodes.filter(({ url }) => url !== undefined));
  }

  /** Records that this worker's claims may be reclaimed from now on. */
  doubt(): void {
    this.#crew.claims.doubt(this.name);
  }

  join(former = this.#session): Promise<void> {
    this.#joining ??= this.#join(former).finally(() => {
      this.#joining = undefined;
    });
    return this.#joining;
  }

  async #join(former: number): Promise<void> {
    const instance = `${this.name}-${this.#joins++}`;
    for (;;) {
      const join = { name: this.name, instance, timeoutMs: this.#timeoutMs, ...(former > 0 ? { former } : {}) };
      const { status, body } = await this.#post(this.#node(), { join });
      if (status === 200) {
        this.#session = body.session as number;
        return;
      }
      if (this.revoking) return;
      await pause(systemClock, 200);
    }
  }

  /** Does one random thing: pauses, leaves and joins again, or sends one or two polls. @param strangers claims of other workers */
  async act(strangers: readonly Claim[]): Promise<void> {
    const { dice } = this.#crew;
    if (this.#silentAfterMs !== undefined && dice.chance(0.02)) {
      // The worker stays silent for longer than its timeout; the answer to its next poll shows whether its session has ended.
      if (dice.chance(0.5)) return pause(systemClock, this.#silentAfterMs * dice.between(1, 5));
      await this.leave();
      return this.join(dice.chance(0.8) ? this.#session : 0);
    }
    const { body, sent } = this.#poll(strangers);
    const first = this.#node();
    if (dice.chance(0.08)) {
      // The client drops the first answer, then sends the same poll again.
      await this.#send(first, body, sent, dice.between(0, 15));
      await this.#send(this.#node(), body, sent);
    } else if (dice.chance(0.12)) {
      await Promise.all([this.#send(first, body, sent), this.#send(this.#node(), body, sent)]);
    } else if (dice.chance(0.1)) {
      const other = this.#poll(strangers);
      await Promise.all([this.#send(first, body, sent), this.#send(this.#node(), other.body, other.sent)]);
    } else await this.#send(first, body, sent);
  }

  /** Claims up to 200 runs and reports each one as succeeded. @returns the number of claimed runs; 1 if the poll failed */
  async finish(): Promise<number> {
    const { status, body } = await this.#post(this.#node(), {
      session: this.#session,
      want: 200,
      waitMs: 300,
      holds: [],
    });
    if (status === 409) await this.join();
    if (status !== 200) return 1;
    const runs = (body.runs ?? []).map((run) => this.#given(run));
    for (const run of runs) {
      const sent: SentPoll = {
        worker: this.name,
        verdicts: [this.#verdict(run, { outcome: "succeeded" })],
        parts: [],
        holds: [],
      };
      while ((await this.#send(this.#node(), this.#body(sent), sent)) !== 200) await pause(systemClock, 200);
    }
    return runs.length;
  }

  async leave(): Promise<void> {
    this.doubt();
    await this.#post(this.#node(), { session: this.#session, leave: true });
  }

  /** Sends an empty poll. @returns the HTTP status */
  async probe(node: ServerNode): Promise<number> {
    return (await this.#post(node, { session: this.#session })).status;
  }

  #given(run: NonNullable<PollAnswer["runs"]>[number]): Claim {
    const claim = this.#crew.claims.given(run, this.name);
    if (this.#silentAfterMs !== undefined || this.revoking) claim.doubtful = true;
    if (!this.mine.includes(claim)) this.mine.push(claim);
    if (this.mine.length > remembered) this.mine.shift();
    return claim;
  }

  async #post(node: ServerNode, body: object, loseAfterMs?: number): Promise<Outcome> {
    const { wire, claims } = this.#crew;
    const { downs } = node;
    const mustRefuse = this.revokedAt.has(node);
    const outcome = await wire.post(node, this.key, body, loseAfterMs);
    const { status } = outcome;
    const excused = node.downs !== downs || node.url === undefined;
    if (status >= 500 && !excused) claims.broken("no answer is a server's fault", `${status} ${outcome.body.detail}`);
    if (status === 0 && !excused && loseAfterMs === undefined)
      claims.broken("no answer is a server's fault", "the connection broke, and the server stands");
    if (mustRefuse && status !== 0 && status !== 401 && !excused)
      claims.broken("a key that is revoked is refused", `${status} ${outcome.body.code} at a server that knew`);
    if (status === 401 && !this.revoking)
      claims.broken("nothing is refused without a cause", `401 ${outcome.body.detail}`);
    return outcome;
  }

  /** Sends a poll and checks its answer. @returns the HTTP status */
  async #send(node: ServerNode, body: PollRequest, sent: SentPoll, loseAfterMs?: number): Promise<number> {
    const { claims } = this.#crew;
    claims.sent(sent);
    const outcome = await this.#post(node, body, loseAfterMs);
    if (outcome.status === 200) {
      for (const run of outcome.body.runs ?? []) this.#given(run);
      claims.answered(sent, outcome.body as PollAnswer);
    } else if (outcome.status === 409 && !this.revoking) {
      if (this.#silentAfterMs === undefined)
        claims.broken("nothing is refused without a cause", `a session that is never silent: ${outcome.body.detail}`);
      // A concurrent poll may have noticed the end of the session first, and joined already.
      if (body.session === this.#session) await this.join();
    } else if (outcome.status === 400 || outcome.status === 403)
      claims.broken("nothing is refused without a cause", `${outcome.status} ${outcome.body.detail}`);
    return outcome.status;
  }

  #poll(strangers: readonly Claim[]): { body: PollRequest; sent: SentPoll } {
    const { dice } = this.#crew;
    const verdicts: SaidVerdict[] = [];
    const parts: SaidPart[] = [];
    const named = () => this.#named(strangers);
    for (let n = dice.whole(0, 3); n > 0; n--) {
      const one = named();
      if (one && verdicts.every(({ fence }) => fence !== one.fence)) verdicts.push(...this.#verdictsOn(one, parts));
    }
    for (let n = dice.whole(0, 2); n > 0; n--) {
      const one = named();
      if (one && [...parts, ...verdicts].every(({ fence }) => fence !== one.fence)) parts.push(this.#part(one, parts));
    }
    const holds = dice.chance(0.3) ? [...new Set([named(), named()].filter((one) => one !== undefined))] : [];
    const sent = { worker: this.name, verdicts, parts, holds };
    return { body: this.#body(sent, dice.whole(0, 4), dice.chance(0.5) ? dice.whole(0, waitMostMs) : undefined), sent };
  }

  #body({ verdicts, parts, holds }: SentPoll, want = 0, waitMs?: number): PollRequest {
    const of = (part: SaidPart["part"]) => parts.filter((one) => one.part === part);
    const claim = ({ runId, fence }: Named) => ({ runId, fence });
    const [inputs] = of("inputs");
    return {
      session: this.#session,
      want,
      ...(waitMs === undefined ? {} : { waitMs }),
      ...(holds.length > 0 ? { holds: [...new Set(holds.map(({ fence }) => fence))] } : {}),
      verdicts: verdicts.map((said): GivenVerdict => ({ ...claim(said), ...said.verdict })),
      reports: of("report").map((said) => ({ ...claim(said), startedAgoMs: 1, progress: said.wrong ? "LARGE" : 1 })),
      logs: of("log").map((said) => ({
        ...claim(said),
        message: said.message ?? "",
        fields: { at: said.wrong ? "ENDLESS" : 1 },
      })),
      states: of("state").map((said) => ({ ...claim(said), state: said.wrong ? ["LARGE"] : said.fence })),
      spawns: of("spawn").map((said) => ({
        ...claim(said),
        children: [{ task: said.wrong ? "nowhere" : "plain", key: `of-${said.runId}` }],
      })),
      spans: of("span").map((said) => ({ ...claim(said), context: `00-${"1".repeat(32)}-${"1".repeat(16)}-01` })),
      ...(inputs ? { inputsOf: claim(inputs) } : {}),
    };
  }

  /**
   * Picks one of the worker's own claims; seldom another worker's claim, or a claim that never existed. Returns undefined if the worker has
   * no claim.
   */
  #named(strangers: readonly Claim[]): Named | undefined {
    const { dice, claims } = this.#crew;
    if (dice.chance(0.04)) {
      const [runId, fence] = [dice.whole(1, 200), dice.whole(1_000_000_000, 2_000_000_000)];
      return { runId, fence, claim: claims.find(runId, fence), mine: false };
    }
    const claim = strangers.length > 0 && dice.chance(0.04) ? dice.one(strangers) : dice.one(this.mine);
    return claim && { runId: claim.runId, fence: claim.fence, claim, mine: claim.worker === this.name };
  }

  /** Draws a part of a poll about a claim, other than a verdict. @param beside the other parts of the same poll */
  #part(one: Named, beside: readonly SaidPart[]): SaidPart {
    const { dice } = this.#crew;
    const drawn = dice.one(["report", "log", "log", "state", "spawn", "span", "inputs"] as const);
    // A poll may request the inputs of one claim only.
    const part = drawn === "inputs" && beside.some((other) => other.part === "inputs") ? "report" : drawn;
    const wrong = part !== "span" && part !== "inputs" && dice.chance(0.15);
    return {
      ...one,
      part,
      wrong,
      over: [...(one.claim?.words.values() ?? [])].some(({ accepted }) => accepted),
      ...(part === "log" ? { message: `line ${this.#crew.next()}` } : {}),
    };
  }

  #verdict(one: Claim, verdict: Verdict, more: { inexact?: boolean; beside?: boolean; n?: number } = {}): SaidVerdict {
    const { inexact = false, beside = false, n = this.#crew.next() } = more;
    const { runId, fence } = one;
    const before = one.words.get(textOf(verdict));
    const was = { accepted: before?.accepted ?? false, late: before?.late ?? false };
    return { runId, fence, claim: one, mine: true, verdict, n, inexact, beside, before: was };
  }

  /** Draws one or more verdicts on a claim; sometimes adds an invalid part about the same claim to `parts`. */
  #verdictsOn(one: Named, parts: SaidPart[]): SaidVerdict[] {
    const { dice } = this.#crew;
    const { claim } = one;
    const drawn = () => {
      const n = this.#crew.next();
      const known = [...(claim?.words.values() ?? [])];
      if (known.length > 0 && dice.chance(0.6)) {
        const again = dice.one(known);
        return { n: again.n, verdict: again.verdict };
      }
      return { n, verdict: verdictOf(claim?.task ?? "plain", n, dice) };
    };
    const said = (given: { n: number; verdict: Verdict }, more: object = {}): SaidVerdict => ({
      ...this.#verdict((claim ?? one) as Claim & Named, given.verdict, { n: given.n, ...more }),
      ...one,
    });
    if (!claim)
      return [{ ...one, ...drawn(), inexact: false, beside: false, before: { accepted: false, late: false } }];
    if (dice.chance(0.06)) {
      const n = this.#crew.next();
      return [said({ n, verdict: { outcome: "succeeded", result: { n, id: "LARGE" } } }, { inexact: true })];
    }
    if (one.mine && dice.chance(0.04) && parts.every(({ fence }) => fence !== one.fence)) {
      const n = this.#crew.next();
      parts.push({
        ...one,
        part: "spawn",
        wrong: true,
        over: [...claim.words.values()].some(({ accepted }) => accepted),
      });
      return [said({ n, verdict: { outcome: "succeeded", result: { n } } }, { beside: true })];
    }
    return Array.from({ length: dice.chance(0.15) ? dice.whole(2, 3) : 1 }, () => said(drawn()));
  }
}

/** Draws a verdict with the number `n` in its content, by which the run's history identifies it. */
function verdictOf(task: string, n: number, dice: Dice): Verdict {
  if (task === "link" && dice.chance(0.5))
    return { outcome: "succeeded", result: { n }, onward: { continueAs: { payload: { n } } } };
  if (task === "link" && dice.chance(0.4))
    return { outcome: "succeeded", result: { n }, onward: { join: "publish", payload: { n } } };
  const drawn = dice.between(0, 1);
  if (drawn < 0.6) return { outcome: "succeeded", result: { n } };
  const error = { message: `said ${n}` };
  if (drawn < 0.75) return { outcome: "failed", error };
  if (drawn < 0.82) return { outcome: "failed", error, retry: false };
  if (drawn < 0.9) return { outcome: "released" };
  if (drawn < 0.95) return { outcome: "stopped", error };
  return { outcome: "cancelled", error };
}
