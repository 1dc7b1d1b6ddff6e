import type { Clock } from "../../../scheduler/src/base/clock.ts";
import { CarillonError } from "../../../scheduler/src/base/errors.ts";
import type { LockPlace } from "../../../scheduler/src/cluster/locks.ts";
import type {
  MembershipProvider,
  MembershipProviderOptions,
  Shown,
} from "../../../scheduler/src/cluster/membership-provider.ts";
import type { Machine } from "./machine.ts";
import type { Network } from "./network.ts";

/** What the service stores about one client; valid until `untilMs` by the service's own time. */
interface Entry {
  shown: Shown | undefined;
  contends: boolean;
  /** The number of the last renewal. A renewal with a lower number has arrived late, and is ignored. */
  call: number;
  /** Position in the queue of contenders for leadership: the lowest number is first. */
  since: number;
  untilMs: number;
}

interface Renewed {
  first: number | undefined;
  shown: number[];
  incarnation: number;
}

/**
 * A simulated coordination service that behaves like the real ones: entries expire without renewal, contenders for leadership form a
 * queue, and the incarnation changes when the service loses its data. Each machine has its own network line to the service.
 */
export class SimulatedCoordination {
  readonly network: Network;
  readonly #entries = new Map<number, Entry>();
  #isUp = true;
  #incarnation = 1;
  #clients = 0;
  #places = 0;

  constructor(network: Network) {
    this.network = network;
  }

  async open(machine: Machine, options: MembershipProviderOptions & { clock: Clock }): Promise<MembershipProvider> {
    const provider = new SimulatedProvider(this, machine, options, ++this.#clients);
    if (!(await provider.begin()))
      throw new CarillonError("COORDINATION_UNREACHABLE", "the simulated service does not answer");
    return provider;
  }

  down(wiped: boolean): void {
    this.#isUp = false;
    if (!wiped) return;
    this.#entries.clear();
    this.#incarnation++;
  }

  up(): void {
    this.#isUp = true;
  }

  /** Calls the service over the network. @returns the result of `work`; undefined if no answer arrives within `timeoutMs` */
  ask<T>(machine: Machine, timeoutMs: number, work: () => T): Promise<T | undefined> {
    const { network } = this;
    const line = `${machine.name} coordination`;
    return new Promise((resolve) => {
      const cancel = machine.after(timeoutMs, () => resolve(undefined));
      network.send(line, "to", network.latency(), () => {
        if (!this.#isUp) return;
        const answer = work();
        network.send(line, "from", network.latency(), () =>
          machine.deliver(() => {
            cancel();
            resolve(answer);
          }),
        );
      });
    });
  }

  renew(client: number, call: number, shown: Shown | undefined, contends: boolean, ttlMs: number): Renewed {
    this.#expire();
    const known = this.#entries.get(client);
    if (known && known.call > call) return this.look();
    const since = known?.contends && contends ? known.since : ++this.#places;
    this.#entries.set(client, { shown, contends, call, since, untilMs: this.network.universe.nowMs + ttlMs });
    return this.look();
  }

  look(): Renewed {
    this.#expire();
    const line = [...this.#entries].filter(([, { contends }]) => contends).sort(([, a], [, b]) => a.since - b.since);
    const shown = [...this.#entries.values()].flatMap((entry) => (entry.shown ? [entry.shown.sessionId] : []));
    return { first: line[0]?.[0], shown, incarnation: this.#incarnation };
  }

  forget(client: number): void {
    this.#entries.delete(client);
  }

  #expire(): void {
    const { nowMs } = this.network.universe;
    for (const [client, { untilMs }] of this.#entries) if (untilMs <= nowMs) this.#entries.delete(client);
  }
}

const renewalsPerTtl = 3;
/** Safety margin in ms, because clocks run at different speeds and renewals are not sent at exact thirds of the TTL. */
const marginMs = 500;

class SimulatedProvider implements MembershipProvider {
  readonly title = "the simulated service";
  readonly serviceId = "simulated";
  readonly #service: SimulatedCoordination;
  readonly #machine: Machine;
  readonly #client: number;
  readonly #ttlMs: number;
  readonly #listeners: ((what: "first" | "sure" | "members") => void)[] = [];
  #announced: Shown | undefined;
  #contends = false;
  #left = false;
  #calls = 0;
  #shownUntil = 0;
  #shownSince = 0;
  #shownSession: number | undefined;
  #lineUntil = 0;
  #isHead = false;
  #knownSince = 0;
  #incarnation = 0;
  #members: ReadonlySet<number> = new Set();
  #told = { first: false, sure: false };
  #cancel = (): void => undefined;

  constructor(service: SimulatedCoordination, machine: Machine, options: MembershipProviderOptions, client: number) {
    this.#service = service;
    this.#machine = machine;
    this.#client = client;
    this.#ttlMs = options.sessionTimeoutMs;
  }

  async begin(): Promise<boolean> {
    return await this.#renew();
  }

  announce(shown: Shown): void {
    this.#announced = shown;
    this.#shownUntil = 0;
    void this.#renew();
  }

  shownUntil(): number {
    return this.#shownSession === this.#announced?.sessionId ? this.#shownUntil : 0;
  }

  shownSince(): number {
    return this.#shownSince;
  }

  sure(): boolean {
    return this.#machine.monotonic() < this.#lineUntil;
  }

  async gone(sessionIds: readonly number[]): Promise<number[]> {
    const answer = await this.#ask(() => this.#service.look());
    if (answer) this.#know(answer);
    if (!answer || !this.#isOld())
      throw new CarillonError("COORDINATION_UNREACHABLE", "the simulated service cannot tell who is gone");
    return sessionIds.filter((id) => !answer.shown.includes(id));
  }

  shown(): ReadonlySet<number> | undefined {
    return this.sure() ? this.#members : undefined;
  }

  async described(): Promise<Shown | undefined> {
    return undefined;
  }

  contend(): void {
    if (this.#contends) return;
    this.#contends = true;
    void this.#renew();
  }

  async stepDown(): Promise<void> {
    if (!this.#contends) return;
    this.#contends = false;
    this.#isHead = false;
    await this.#renew();
  }

  first(): boolean {
    return this.ahead() && this.#isOld();
  }

  ahead(): boolean {
    return this.#contends && this.#isHead && this.sure();
  }

  onChange(listener: (what: "first" | "sure" | "members") => void): void {
    this.#listeners.push(listener);
  }

  locks(): Promise<LockPlace> {
    return Promise.reject(new CarillonError("COORDINATION_UNSUPPORTED", "the simulated service has no locks"));
  }

  async leave(): Promise<void> {
    this.#left = true;
    this.#cancel();
    await this.#ask(() => this.#service.forget(this.#client));
  }

  /**
   * True if this client has known the service's present incarnation for longer than a TTL. Until then, processes that registered before
   * the service lost its data may still be about to register again.
   */
  #isOld(): boolean {
    return this.#machine.monotonic() - this.#knownSince > this.#ttlMs + marginMs;
  }

  #ask<T>(work: () => T): Promise<T | undefined> {
    return this.#service.ask(this.#machine, this.#ttlMs / renewalsPerTtl, work);
  }

  async #renew(): Promise<boolean> {
    this.#cancel();
    if (this.#left) return false;
    const began = this.#machine.monotonic();
    const [announced, contends] = [this.#announced, this.#contends];
    this.#cancel = this.#machine.after(this.#ttlMs / renewalsPerTtl, () => void this.#renew());
    const call = ++this.#calls;
    const renewed = await this.#ask(() => this.#service.renew(this.#client, call, announced, contends, this.#ttlMs));
    // A later renewal has been sent; only its answer counts, because it is newer.
    if (renewed && call !== this.#calls) return true;
    if (!renewed || this.#left) {
      this.#tell();
      return false;
    }
    this.#know(renewed);
    const until = began + this.#ttlMs - marginMs;
    this.#lineUntil = Math.max(this.#lineUntil, until);
    if (announced) {
      const mono = this.#machine.monotonic();
      if (this.#shownSession !== announced.sessionId || mono >= this.#shownUntil) this.#shownSince = mono;
      [this.#shownSession, this.#shownUntil] = [announced.sessionId, until];
    }
    this.#isHead = contends && this.#contends && renewed.first === this.#client;
    const before = this.#members;
    this.#members = new Set(renewed.shown);
    if ([...before].some((id) => !this.#members.has(id))) this.#say("members");
    this.#tell();
    return true;
  }

  #know({ incarnation }: Renewed): void {
    if (incarnation === this.#incarnation) return;
    this.#incarnation = incarnation;
    this.#knownSince = this.#machine.monotonic();
    // A new incarnation has a new queue, so this client's position is unknown.
    this.#isHead = false;
  }

  #tell(): void {
    const now = { first: this.ahead(), sure: this.sure() };
    const before = this.#told;
    this.#told = now;
    if (now.sure !== before.sure) this.#say("sure");
    if (now.first !== before.first) this.#say("first");
  }

  #say(what: "first" | "sure" | "members"): void {
    for (const listener of this.#listeners) listener(what);
  }
}
