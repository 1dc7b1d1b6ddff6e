import { type Command, Option } from "commander";
import { logLevels } from "../config/log-levels.ts";
import { late } from "../late.ts";
import { type CommandParts, collect, collectLabel, coordinationOption, wholeNumber } from "./parts.ts";

const dev = late(() => import("../dev.ts"), "dev");
const serve = late(() => import("./node-commands.ts"), "serve");
const serveRemote = late(() => import("../remote-worker.ts"), "serveRemote");

const nodeOptions = (command: Command, { scheduler, worker }: { scheduler: boolean; worker: boolean }): Command => {
  coordinationOption(command)
    .option(
      "--listen-url <URL>",
      "hear signals here, where the store's URL leads to a pooler (default: the store's URL)",
    )
    .option("--fail-fast", "end when the store or the coordination service is away, instead of trying on")
    .option("--name <NAME>", "this process's name in the cluster (default: a made one)")
    .option("--address <HOST:PORT>", "where the others reach this process (else CARILLON_ADDRESS, or nowhere)")
    .option("--label <NAME=TEXT>", "what to know this process by in carillon nodes; may be repeated", collectLabel);
  if (scheduler) command.option("--observer", "never lead, only step in where the leader left something out");
  command
    .option(
      "--listen <HOST:PORT>",
      scheduler
        ? "serve the HTTP API, and workers with a key, here (default: nowhere)"
        : "serve metrics and probes here; with a store, all that a server does (default: nowhere)",
    )
    .option("--behind-proxy", "a proxy before it ends TLS, so it may listen where others reach it")
    .option(
      "--trusted-proxy <ADDRESS>",
      "believe X-Forwarded-For from this address or network; may be repeated",
      collect,
    );
  if (scheduler)
    command.option("--provider <FILE>", "let an OpenID Connect provider sign people in, as this YAML file says");
  command.option("--no-migrate", "refuse an older schema instead of migrating it: see carillon migrate");
  command.option("--alarms <FILE>", "tell of what goes wrong by the channels of this YAML file");
  if (worker) {
    command
      .option("--group <NAME>", "serve the tasks of this group; may be repeated", collect)
      .option("--concurrency <N>", "run at most this many at once (default: 100)", wholeNumber(1, 10_000))
      .option("--allow <PROGRAM>", "let command tasks run this program; may be repeated", collect)
      .option("--allow-env <NAME>", "let command tasks set this variable, or all of APP_*; may be repeated", collect)
      .option("--shell", "let command tasks use an allowed shell")
      .option("--rehearse", "log what command tasks would run, and run nothing")
      .option("--allow-http <HOST>", "let HTTP tasks call this host or address range; may be repeated", collect);
  }
  return command.addOption(
    new Option("--log-level <LEVEL>", "say this and what is worse (default: info)").choices(logLevels),
  );
};

/** Adds the commands that run the processes of a cluster. */
export function addProcesses({ program, add, doing, terminal }: CommandParts): void {
  nodeOptions(
    add(program, "dev [file]", "Plan and run the tasks of a file here, and watch them fire.", "carillon dev tasks.ts"),
    { scheduler: true, worker: true },
  ).action(doing(([file], options: Parameters<typeof dev>[1]) => dev(file, options, terminal)));
  nodeOptions(
    add(
      program,
      "server",
      "Plan slots and look after the cluster, and leave the work to workers.",
      "carillon server --store postgres://db.example/app",
    ),
    { scheduler: true, worker: false },
  ).action(doing((_, options: Parameters<typeof serve>[2]) => serve("server", undefined, options, terminal)));
  nodeOptions(
    add(
      program,
      "worker [file]",
      "Run the tasks of a file, or stored commands, and leave the planning to others.",
      "carillon worker tasks.ts --concurrency 20",
    ),
    { scheduler: false, worker: true },
  )
    .option(
      "--key <KEY>",
      "with --server, which may be repeated: the worker key (else CARILLON_WORKER_KEY, which others do not see)",
    )
    .action(
      doing(([file], options: Parameters<typeof serveRemote>[1]) =>
        options.server ? serveRemote(file, options, terminal) : serve("worker", file, options, terminal),
      ),
    );
}
