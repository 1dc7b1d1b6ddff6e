import { pause } from "../../../scheduler/src/base/clock.ts";
import { CarillonError } from "../../../scheduler/src/base/errors.ts";
import type { Log } from "../../../scheduler/src/base/log.ts";
import { mix, seeded } from "../../../scheduler/src/base/random.ts";
import { Carillon } from "../../../scheduler/src/library/carillon.ts";
import type { Run } from "../../../scheduler/src/run/handler.ts";
import { realSurroundings, type Surroundings } from "../../../scheduler/src/settings/surroundings.ts";
import type { TaskDefinition } from "../../../scheduler/src/task/task.ts";
import type { Execution, Operation } from "../history.ts";
import { Contenders } from "../locks/contenders.ts";
import type { Act, Asked } from "../plan/act.ts";
import { taskNames } from "../plan/asked.ts";
import { Dice } from "../plan/dice.ts";
import { followerName } from "../plan/flow.ts";
import type { NodePlan, Plan } from "../plan/plan.ts";
import type { SimulatedCoordination } from "../world/coordination.ts";
import { Doors, lineDriver } from "../world/line.ts";
import { Machine } from "../world/machine.ts";
import { type Cut, fairWeather, type Network } from "../world/network.ts";
import type { Server } from "../world/server.ts";
import type { Stage } from "../world/stage.ts";
import type { Universe } from "../world/universe.ts";
import { carryOut, requestOf } from "./operation.ts";
import type { Recorder } from "./recorder.ts";
import { Strikes } from "./strikes.ts";

interface Node {
  readonly plan: NodePlan;
  life: number;
  machine: Machine;
  carillon: Carillon;
  started: boolean;
  /** True while the node is being stopped; afterwards the node is down. */
  stopping: boolean;
}

export interface ClusterOptions {
  readonly plan: Plan;
  readonly universe: Universe;
  readonly network: Network;
  readonly server: Server;
  readonly coordination: SimulatedCoordination;
  readonly recorder: Recorder;
  readonly stage: Stage;
}

/** Plays one seed: runs its processes, each a complete instance of Carillon as users have it, and causes its faults. */
export class Cluster {
  readonly doors = new Doors();
  readonly #options: ClusterOptions;
  readonly #nodes = new Map<string, Node>();
  readonly #runs: (number | undefined)[] = [];
  /** Set for a seed with locks, whose processes do nothing but use locks. */
  readonly contenders: Contenders | undefined;
  /** Decides when strikes happen. It receives the statements that the server has carried out. */
  readonly strikes: Strikes;
  #operations = 0;

  constructor(options: ClusterOptions) {
    this.#options = options;
    const { seed, locks: played } = options.plan;
    const onHeld = (name: string, forMs: number) => this.strikes.held(name, forMs);
    this.contenders = played ? new Contenders({ ...options, seed, played, onHeld }) : undefined;
    this.strikes = new Strikes({
      ...options,
      sessionTimeoutMs: options.plan.sessionTimeoutMs,
      crash: (node, forMs) => this.#crash(node, forMs),
      pause: (node, forMs) => this.#pause(node, forMs),
      resume: (node) => this.#resume(node),
      cut: (line, way, forMs) => this.#cut(line, way, forMs),
      definition: (task) => this.#savedLast(task),
      withoutGrace: (node, task) => this.#withoutGrace(node, task),
      leads: (node) => this.#nodes.get(node)?.carillon.term != null,
      hasLocks: (node) => this.contenders?.hasSome(node) ?? false,
    });
  }

  start(): void {
    for (const plan of this.#options.plan.nodes) {
      const { network, plan: whole } = this.#options;
      const atMs = whole.together ? network.between(0, 1) : plan.name === "n1" ? 0 : network.between(0, 3_000);
      this.#options.universe.after(atMs, () => this.#begin(plan, 1));
    }
  }

  do(act: Act): void {
    const { universe, network, recorder, server, coordination, stage } = this.#options;
    const undo = (ms: number, how: () => void | Promise<void>) => void universe.after(ms, how);
    switch (act.kind) {
      case "crash":
        this.#crash(act.node, act.forMs);
        break;
      case "restart":
        this.#restart(act.node, act.forMs);
        break;
      case "pause":
        this.#pause(act.node, act.forMs);
        break;
      case "cut":
        this.#cut(`${act.node} ${act.service}`, act.way, act.forMs);
        break;
      case "strike":
        this.strikes.add(act);
        break;
      case "weather": {
        recorder.happened(`weather ${JSON.stringify(act.weather)} for ${Math.round(act.forMs)} ms`);
        network.weather = act.weather;
        undo(act.forMs, () => {
          if (network.weather === act.weather) network.weather = fairWeather;
        });
        break;
      }
      case "standstill":
        for (const name of this.#nodes.keys()) this.#pause(name, act.forMs * network.between(0.9, 1));
        break;
      case "store down":
        recorder.happened(`the store is down for ${Math.round(act.forMs)} ms`);
        this.doors.shut();
        undo(0, () => server.dies());
        undo(act.forMs, () => {
          this.doors.open = true;
        });
        break;
      case "standby falls behind":
        recorder.happened("a standby falls behind");
        undo(0, () => stage.keep());
        break;
      case "store goes back":
        recorder.happened(`the standby that fell behind is the store, after ${Math.round(act.forMs)} ms`);
        this.doors.shut();
        undo(0, async () => {
          await server.isReplaced();
          await stage.goBack(act.numbersAhead);
          recorder.wentBack(server.wallMs());
        });
        undo(act.forMs, () => {
          this.doors.open = true;
        });
        break;
      case "store stalls":
        recorder.happened(`the store stalls for ${Math.round(act.forMs)} ms`);
        server.stall(act.forMs);
        break;
      case "coordination down":
        recorder.happened(`the coordination service is down for ${Math.round(act.forMs)} ms, wiped: ${act.wiped}`);
        coordination.down(act.wiped);
        undo(act.forMs, () => coordination.up());
        break;
      case "wall":
        recorder.happened(`${act.node}'s wall clock steps by ${Math.round(act.stepMs)} ms`);
        this.#nodes.get(act.node)?.machine.stepWall(act.stepMs);
        break;
      case "store clock":
        recorder.happened(`the store's clock steps by ${Math.round(act.stepMs)} ms`);
        server.stepWall(act.stepMs);
        break;
      default:
        this.#operate(act);
    }
  }

  /** Ends all faults, and causes no further ones. */
  heal(): void {
    const { network, recorder, coordination, plan } = this.#options;
    recorder.happened("healed");
    this.strikes.heal();
    network.heal();
    this.doors.open = true;
    coordination.up();
    for (const { name } of plan.nodes) this.#resume(name);
  }

  /** Ends the simulation: kills all processes, breaks all connections, and rolls back the open transactions of the server. */
  async end(): Promise<void> {
    for (const { machine } of this.#nodes.values()) machine.kill();
    for (const client of [...this.doors.clients]) client.breaks(new Error("the simulation is over"));
    await this.#options.server.abandon();
  }

  #begin(plan: NodePlan, life: number): void {
    const { universe, network, server, recorder, stage, coordination } = this.#options;
    const { schema, epochMs } = stage;
    const { sessionTimeoutMs, beatMs, concurrency, seed, sort } = this.#options.plan;
    const clocks = { rate: plan.rate, baseMs: plan.baseMs + life * 977, wallAheadMs: epochMs + plan.wallAheadMs };
    const machine = new Machine(plan.name, universe, clocks);
    const random = seeded(mix(mix(seed, life), plan.name.charCodeAt(1)));
    const surroundings: Surroundings = {
      ...realSurroundings,
      clock: machine,
      callersClock: machine,
      random,
      settings: { beatMs },
      postgres: {
        clock: machine,
        random,
        // The partitions of the simulated day exist already; others would only slow queries down.
        partitions: "there",
        standby: sort === "behind",
        driver: lineDriver({ machine, network, server, doors: this.doors, note: (line) => universe.note(line) }),
      },
      openProvider: (options) => coordination.open(machine, options),
      // Tasks are defined at run time by the process that saves them; the code has only the handlers.
      around: async (store) => {
        const { tasks, history, operations } = store;
        // The simulation calls `saveAll` only for one task, when a process enqueues a run of it; the task exists already.
        const saveAll: typeof tasks.saveAll = async ([first, ...more]) =>
          first && more.length === 0 ? [await tasks.byName(first.name)] : [];
        // The simulated time stays within one day, and its partitions exist.
        const rotate: typeof history.rotate = async () => ({ created: [], dropped: [] });
        const step: typeof operations.step = (...given) => {
          this.strikes.steps(plan.name);
          return operations.step(...given);
        };
        return {
          ...store,
          tasks: { ...tasks, saveAll },
          history: { ...history, rotate },
          operations: { ...operations, step },
        };
      },
    };
    const carillon = new Carillon(
      {
        store: "postgres://simulated/store",
        schema,
        name: plan.name,
        scheduler: plan.scheduler,
        concurrency,
        ...(this.#options.plan.coordination ? { coordination: "zookeeper://simulated" } : {}),
        groups: ["default"],
        sessionTimeout: sessionTimeoutMs,
        drain: "5s",
        handleSignals: false,
        log: this.#logOf(plan.name),
      },
      surroundings,
    );
    const node: Node = { plan, life, machine, carillon, started: false, stopping: false };
    this.#nodes.set(plan.name, node);
    recorder.happened(`${plan.name} begins its life ${life}`);
    if (this.contenders) {
      this.contenders.begin({ name: plan.name, life, machine, carillon });
      return;
    }
    const believed = new Map<string, number>();
    carillon.onRun(({ kind, runId, attempt, startedMs }) => {
      if (kind === "started") believed.set(`${runId} ${attempt}`, startedMs);
    });
    for (const task of [...taskNames, followerName])
      carillon.task(task, {}, (run) => this.#work(node, run, believed.get(`${run.id} ${run.attempt}`) ?? Number.NaN));
    carillon.start().then(
      () => {
        node.started = true;
      },
      (error) => {
        if (!node.stopping) recorder.unexpected(`${plan.name} could not start: ${error}`);
      },
    );
  }

  /** The handler of every task: it runs as the seed determines, and records its execution. */
  async #work(node: Node, run: Run, believedMs: number): Promise<string> {
    const { universe, server, recorder, plan } = this.#options;
    const { machine, life } = node;
    const dice = new Dice(mix(mix(plan.seed, run.id), run.attempt));
    const length = dice.between(0, 1);
    const isLong = length > 1 - plan.longRuns;
    const forMs = isLong ? dice.between(8e3, 35e3) : length < 0.45 ? dice.between(5, 500) : dice.between(500, 8_000);
    const deaf = dice.chance(0.2);
    const fails = dice.chance(plan.sort === "stops" ? 0.3 : 0.12);
    const execution: Execution = {
      node: node.plan.name,
      life,
      run: run.id,
      task: run.task,
      attempt: run.attempt,
      fence: run.fence,
      slotMs: run.slot?.getTime() ?? null,
      dueMs: run.due.getTime(),
      deaf,
      startMs: universe.nowMs,
      startStoreMs: server.wallMs(),
      believedMs,
      endMs: null,
      how: null,
      stoppedWhy: null,
    };
    recorder.executions.push(execution);
    const reason = () => String((run.signal.reason as { code?: string }).code);
    run.signal.addEventListener("abort", () => {
      if (reason() === "TIMEOUT") execution.timedOut = true;
    });
    universe.note(`${node.plan.name} starts run ${run.id} of ${run.task} attempt ${run.attempt} fence ${run.fence}`);
    const struckMs = this.strikes.began(node.plan.name, forMs, run.task);
    await pause(machine, struckMs, deaf ? undefined : run.signal);
    execution.endMs = universe.nowMs;
    execution.how = run.signal.aborted && !deaf ? "stopped" : fails ? "threw" : "returned";
    if (execution.how === "stopped") execution.stoppedWhy = reason();
    universe.note(`${node.plan.name} ends run ${run.id} attempt ${run.attempt}: ${execution.how}`);
    if (execution.how === "stopped") throw run.signal.reason;
    if (fails) throw new Error("as the seed has it");
    return "done";
  }

  #cut(line: string, way: Cut, forMs: number): void {
    const { recorder, network, universe } = this.#options;
    recorder.happened(`the line ${line} is cut (${way}) for ${Math.round(forMs)} ms`);
    network.cut(line, way);
    universe.after(forMs, () => network.cut(line, "none"));
  }

  #savedLast(task: string): TaskDefinition | undefined {
    const { operations } = this.#options.recorder;
    return operations.findLast((one) => one.task === task && one.kind === "save" && one.outcome === "ok")?.definition;
  }

  /** Saves the task without a grace period, through another node. */
  #withoutGrace(node: string, task: string): void {
    const definition = this.#savedLast(task);
    const other = this.#options.plan.nodes.find(({ name }) => name !== node);
    if (definition && other)
      this.#operate({ kind: "save", node: other.name, task, definition: { ...definition, graceMs: 0 } });
  }

  #pause(name: string, forMs: number): void {
    const machine = this.#nodes.get(name)?.machine;
    if (!machine?.alive || machine.isPaused) return;
    this.#options.recorder.happened(`${name} stands still for ${Math.round(forMs)} ms`);
    machine.pause();
    this.#options.universe.after(forMs, () => {
      if (machine.isPaused) machine.resume();
    });
  }

  /** Resumes a suspended process before the planned end of its pause. */
  #resume(name: string): void {
    const machine = this.#nodes.get(name)?.machine;
    if (!machine?.isPaused) return;
    this.#options.recorder.happened(`${name} goes on`);
    machine.resume();
  }

  #crash(name: string, forMs: number): void {
    const node = this.#nodes.get(name);
    if (!node?.machine.alive) return;
    const { recorder, universe } = this.#options;
    recorder.happened(`${name} is killed, for ${Math.round(forMs)} ms`);
    this.#kill(node);
    universe.after(forMs, () => this.#begin(node.plan, node.life + 1));
  }

  /** Kills the process. As with a real kill, its connections are closed at once. */
  #kill({ machine }: Node): void {
    machine.kill();
    this.contenders?.ended(machine);
    for (const client of [...this.doors.clients]) if (client.isOf(machine)) client.breaks(new Error("killed"));
  }

  #restart(name: string, forMs: number): void {
    const node = this.#nodes.get(name);
    if (!node?.machine.alive || node.stopping) return;
    const { recorder, universe } = this.#options;
    recorder.happened(`${name} is stopped, and started again`);
    node.stopping = true;
    const again = () => {
      if (!node.machine.alive) return;
      this.#kill(node);
      universe.after(Math.min(forMs, 3_000), () => this.#begin(node.plan, node.life + 1));
    };
    node.carillon.stop().then(again, (error) => {
      recorder.unexpected(`${name} could not stop: ${error}`);
      again();
    });
  }

  #operate(act: Extract<Act, { node: string; kind: Operation["kind"] }>): void {
    const { plan, universe, server, recorder } = this.#options;
    const at = plan.nodes.findIndex(({ name }) => name === act.node);
    const able = [...plan.nodes.slice(at), ...plan.nodes.slice(0, at)]
      .map(({ name }) => this.#nodes.get(name))
      .find((node) => node?.started && node.machine.alive && !node.stopping);
    if (!able) return;
    const { carillon } = able;
    const { now } = { now: server.wallMs() };
    const operation: Operation = {
      id: `op${++this.#operations}`,
      kind: act.kind,
      node: able.plan.name,
      task: taskOf(act),
      invokedMs: universe.nowMs,
      invokedStoreMs: now,
      endedMs: null,
      endedStoreMs: null,
      outcome: "unknown",
      ...(act.kind === "save" ? { definition: act.definition } : {}),
      ...(act.kind === "enqueue" ? { dueMs: now + act.inMs, key: act.key, limitKey: act.limitKey } : {}),
    };
    if (act.kind === "cancel") {
      operation.run = this.#runs[act.run];
      if (operation.run === undefined) return;
    }
    if (act.kind === "stop operation") {
      operation.operationId = recorder.operations.findLast(({ request }) => request)?.operationId;
      if (operation.operationId === undefined) return;
    }
    recorder.operations.push(operation);
    universe.note(`${operation.id} ${act.kind} ${operation.task} at ${operation.node}`);
    const told = (outcome: Operation["outcome"], answer: string) => {
      operation.outcome = outcome;
      operation.answer = answer;
      operation.endedMs = universe.nowMs;
      operation.endedStoreMs = server.wallMs();
      universe.note(`${operation.id} ${outcome} ${answer}`);
    };
    const reason = operation.id;
    const asked = async (): Promise<string> => {
      switch (act.kind) {
        case "save":
          return String((await carillon.save(act.definition, { reason })).changed);
        case "pause task":
          return String((await carillon.pause(act.task, { reason })).started);
        case "resume task":
          return String(await carillon.resume(act.task, { reason }));
        case "remove task":
          return String(await carillon.remove(act.task, { reason }));
        case "cancel":
          return await carillon.cancel(operation.run as number);
        case "enqueue": {
          const { key, limitKey } = act;
          const options = { at: operation.dueMs as number, ...(key ? { key } : {}), ...(limitKey ? { limitKey } : {}) };
          const { runId, created } = await carillon.enqueue(act.task, undefined, options);
          operation.run = runId;
          operation.created = created;
          this.#runs.push(runId);
          return `run ${runId}`;
        }
        case "begin operation":
          return `operation ${await this.#beginOperation(able, act.asked, operation)}`;
        case "stop operation": {
          const { store, nowMs } = await carillon.open();
          return store.operations.stop(operation.operationId as number, nowMs(), { author: able.plan.name, reason });
        }
      }
    };
    asked().then(
      (answer) => told("ok", answer),
      (error) => {
        if (!(error instanceof CarillonError)) recorder.unexpected(`${operation.id} ${act.kind}: ${error}`);
        const refused = error instanceof CarillonError && !error.code.startsWith("STORE_") && error.code !== "STOPPED";
        told(refused ? "refused" : "unknown", String(error));
      },
    );
  }

  async #beginOperation({ plan, carillon, machine }: Node, asked: Asked, operation: Operation): Promise<number> {
    const { store, nowMs } = await carillon.open();
    const request = requestOf(asked, nowMs(), plan.name, operation.id);
    operation.request = request;
    const begin = () => store.operations.begin(request, operation.id, nowMs());
    const [id, again = id] = await Promise.all(asked.twice ? [begin(), begin()] : [begin()]);
    if (id !== again) this.#options.recorder.unexpected(`${operation.id} was begun as ${id} and as ${again}`);
    operation.operationId = id as number;
    if (asked.waits)
      carryOut(store, operation.operationId, machine, nowMs).catch((error) => {
        if (!(error instanceof CarillonError)) this.#options.recorder.unexpected(`${operation.id} step: ${error}`);
      });
    return operation.operationId;
  }

  #logOf(name: string): Log {
    const { universe, recorder } = this.#options;
    const say = (level: string) => (fields: object, message: string) => {
      universe.note(`${name} ${level} ${message}`);
      recorder.logged(`${name} ${level} ${message} ${JSON.stringify(fields)}`, level === "error");
    };
    const quiet = () => undefined;
    return { debug: recorder.traced ? say("debug") : quiet, info: say("info"), warn: say("warn"), error: say("error") };
  }
}

const taskOf = (act: Extract<Act, { kind: Operation["kind"] }>): string =>
  "task" in act ? act.task : act.kind === "begin operation" ? (act.asked.filter.task ?? "") : "";
