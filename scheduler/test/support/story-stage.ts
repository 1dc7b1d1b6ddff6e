import { randomBytes } from "node:crypto";
import { alarmRules } from "../../src/alarms/alarms.ts";
import { partsOf } from "../../src/api/client.ts";
import { type RouteId, shapeOf } from "../../src/api/contract.ts";
import type { Example } from "../../src/api/examples/example.ts";
import { examples } from "../../src/api/examples.ts";
import { ApiStage, type Asked, type AskOptions } from "./api-stage.ts";
import { firstPassword, said } from "./remote-stage.ts";
import { until } from "./store-stage.ts";
import { Story } from "./story.ts";
import { codeOf } from "./totp.ts";
import { WebhookReceiver } from "./webhook-receiver.ts";

/** A server on which the OpenAPI examples are played in order, and the other events in its cluster that the examples need. */
export class StoryStage extends ApiStage {
  readonly story = new Story();
  readonly #receiver = new WebhookReceiver();
  readonly #answers = new Map<RouteId, Asked>();
  #cookie = "";
  #session = 0;

  override async open(): Promise<this> {
    const webhook = await this.#receiver.listen();
    return super.open({
      secretKeys: randomBytes(32).toString("base64"),
      // Rules without channels send no alarms, for example about a failed run, so the only message is the channel's test message.
      alarms: { channels: { ops: { webhook } }, rules: Object.fromEntries(alarmRules.map((rule) => [rule, []])) },
    });
  }

  override async close(): Promise<void> {
    await super.close();
    await this.#receiver.close();
  }

  get #key(): string {
    return this.#answers.get("createWorkerKey")?.body.secret;
  }

  /** Signs a user in as a browser does. @returns the cookie */
  async #signIn(name: string, password: string): Promise<string> {
    const { headers, status } = await this.ask("POST", "/v1/sign-in", {
      body: { name, password },
      headers: { origin: this.urlOf() },
    });
    if (status !== 200) throw new Error(`${name} cannot sign in: ${status}`);
    return cookieOf(headers);
  }

  /** Lets the worker claim the next run of its task, log a line and report this verdict. */
  async #work(verdict: object, log: string): Promise<void> {
    const { runs } = await this.poll(this.#key, { session: this.#session, want: 1, waitMs: 20_000 });
    const [run] = runs;
    if (!run) throw new Error("the worker was given no run");
    const logs = [{ runId: run.runId, fence: run.fence, agoMs: 1, message: log }];
    await this.poll(this.#key, {
      session: this.#session,
      logs,
      verdicts: [said(run, { startedAgoMs: 5, ...verdict })],
    });
  }

  /** By route: what must happen in the cluster before its request. */
  readonly #before: Partial<Record<RouteId, () => Promise<void>>> = {
    getRun: async () => {
      this.#session = await this.join(this.#key, { name: "finance-1", tasks: ["settle"] });
      await this.#work({ outcome: "succeeded", result: { entries: 412 } }, "412 entries");
    },
    decideRun: () => this.#work({ outcome: "stopped" }, "begun"),
    listAlarms: async () => {
      const t = Math.floor((await this.store.clock()).ms);
      await this.store.alarms.report(
        [{ rule: "late", subject: "settle", count: 1, text: "settle was 9 min late", runId: null }],
        t,
      );
      const thresholds = {
        lateMs: 1e9,
        overdueMs: 1e9,
        unfiredMs: 1e9,
        stuckMs: 1e9,
        leaderlessMs: 1e9,
        summaryMs: 1e9,
      };
      await this.store.alarms.look(["late"], thresholds, { late: ["nobody"] }, t);
      await until("the alarm is open", async () => (await this.client().listAlarms({ rule: "late" })).items.length > 0);
    },
    getAlarmMessage: async () => {
      const { message } = this.#answers.get("testAlarmChannel")?.body ?? {};
      const admin = this.client();
      await until("the message is sent", async () => (await admin.getAlarmMessage({ message })).state === "sent");
    },
    listOperations: async () => {
      const admin = this.client();
      await until("the backfill has begun", async () => (await admin.listOperations()).items[0]?.started !== null);
    },
    listEventConsumers: async () => {
      const { events } = this.store;
      const nowMs = Math.floor((await this.store.clock()).ms);
      const { place } = await events.want(["run.failed"], nowMs + 86_400_000, null, nowMs);
      await events.enrol("webhook/billing", place, nowMs + 86_400_000);
      const { epoch } = (await events.serve("webhook/billing")) as { epoch: number };
      const failing = { type: "run.failed" as const, runId: 1, task: "settle", attempt: 3, error: "it answered 500" };
      await events.failed("webhook/billing", epoch, { ...failing, eventMs: nowMs, atMs: nowMs, againMs: nowMs }, nowMs);
    },
    listSignInsOf: async () => {
      for (let n = 0; n < 2; n++) await this.#signIn("ann", "seven bells at noon");
    },
    confirmSecondFactor: async () => {
      this.story.draw("123456", codeOf(this.#answers.get("beginSecondFactor")?.body.secret));
    },
    resetSecondFactor: async () => {
      const by = { headers: { cookie: await this.#signIn("ann", "seven bells at noon"), origin: this.urlOf() } };
      const begun = await this.ask("POST", "/v1/me/second-factor", {
        ...by,
        body: { password: "seven bells at noon" },
      });
      const body = { code: codeOf(begun.body.secret) };
      await this.ask("POST", "/v1/me/second-factor/confirm", { ...by, body });
    },
    listSignIns: async () => void (await this.#signIn("admin", firstPassword)),
    endOtherSignIns: async () => void (await this.#signIn("admin", firstPassword)),
  };

  async happens(routeId: RouteId): Promise<void> {
    await this.#before[routeId]?.();
  }

  /** Sends the example's request, with `others` added to its headers; null removes a header. */
  async request(routeId: RouteId, others: Readonly<Record<string, string | null>> = {}): Promise<Asked> {
    const shape = shapeOf(routeId);
    const { given = {}, ifVersion } = examples[routeId] as Example;
    const { path, query, body } = partsOf(shape, this.story.placed(given as Record<string, unknown>));
    const headers = {
      cookie: this.#cookie === "" ? null : this.#cookie,
      origin: this.urlOf(),
      "if-match": ifVersion === undefined ? null : `"${ifVersion}"`,
      ...others,
    };
    const options: AskOptions = {
      headers: Object.fromEntries(Object.entries(headers).filter((one): one is [string, string] => one[1] !== null)),
      ...(body === undefined ? {} : { body }),
    };
    return this.ask(shape.method, `${path}${query}`, options);
  }

  /**
   * Stores the values of a response that later requests need.
   * @returns the places in which the response's shape differs from the example's
   */
  keep(routeId: RouteId, asked: Asked): string[] {
    this.#answers.set(routeId, asked);
    if (routeId === "signIn") this.#cookie = cookieOf(asked.headers);
    return this.story.differences((examples[routeId] as Example).answer, asked.body, routeId);
  }
}

const cookieOf = (headers: Headers): string => (headers.getSetCookie()[0] ?? "").split(";")[0] ?? "";
