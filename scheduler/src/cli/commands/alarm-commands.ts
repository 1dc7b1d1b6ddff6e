import { Argument, type Command, InvalidArgumentError } from "commander";
import { alarmRules } from "../../alarms/alarms.ts";
import { late } from "../late.ts";
import type { CommandParts } from "./parts.ts";

const listAlarms = late(() => import("../access/alarms.ts"), "listAlarms");
const acknowledge = late(() => import("../access/silences.ts"), "acknowledge");
const endSilences = late(() => import("../access/silences.ts"), "endSilences");
const listSilences = late(() => import("../access/silences.ts"), "listSilences");
const listRules = late(() => import("../access/alarm-rules.ts"), "listRules");
const removeRule = late(() => import("../access/alarm-rules.ts"), "removeRule");
const setRule = late(() => import("../access/alarm-rules.ts"), "setRule");
const showRule = late(() => import("../access/alarm-rules.ts"), "showRule");
const silence = late(() => import("../access/silences.ts"), "silence");
const testChannel = late(() => import("../access/test-channel.ts"), "testChannel");

const silenceNumber = (text: string): number => {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError("Give the number of a silence.");
  return Number(text);
};

export function addAlarms({
  add,
  doing,
  program,
  terminal,
}: Pick<CommandParts, "add" | "doing" | "terminal" | "program">): void {
  const alarms = add(program, "alarms", "See what is wrong now, and whom it was told.", "carillon alarms")
    .helpCommand(false)
    .action(doing((_, options) => listAlarms(options, terminal)));
  add(alarms, "list", "The same: what is wrong now, and whom it was told.", "carillon alarms list").action(
    doing((_, options) => listAlarms(options, terminal)),
  );
  add(
    alarms,
    "acknowledge",
    "Say that open alarms of a rule are known: nothing of them is told until they are over and come again.",
    'carillon alarms acknowledge failed --task settle --reason "the bank is down"',
  )
    .addArgument(new Argument("<rule>", `which: ${alarmRules.join(", ")}, or a stored rule`))
    .option("--task <NAME>", "only of this task (default: all that are open)")
    .option("--reason <TEXT>", "why, for those who look at it later")
    .action(doing(([rule = ""], options: Parameters<typeof acknowledge>[1]) => acknowledge(rule, options, terminal)));
  add(
    alarms,
    "silence",
    "Tell nothing of a rule, a task or both for a while; what is open then is told afterwards.",
    'carillon alarms silence late --task settle --for 2h --reason "migration"',
  )
    .addArgument(new Argument("[rule]", "which, as for acknowledge (default: any)"))
    .option("--task <NAME>", "only of this task (default: of all, and of the cluster)")
    .requiredOption("--for <DURATION>", "for how long, such as 2h; at most 30d")
    .option("--reason <TEXT>", "why, for those who look at it later")
    .action(doing(([rule], options: Parameters<typeof silence>[1]) => silence(rule, options, terminal)));
  add(alarms, "silences", "List what is not told of for a while.", "carillon alarms silences").action(
    doing((_, options) => listSilences(options, terminal)),
  );
  add(alarms, "unsilence", "End silences before their time.", "carillon alarms unsilence 7")
    .addArgument(
      new Argument("<silence...>", "numbers, as silences shows them").argParser(
        (text: string, before: number[] = []) => [...before, silenceNumber(text)],
      ),
    )
    .option("--reason <TEXT>", "why, for the audit")
    .action(
      doing(([numbers], options: Parameters<typeof endSilences>[1]) =>
        endSilences(numbers as unknown as number[], options, terminal),
      ),
    );
  add(
    alarms,
    "test",
    "Send a test to a channel from here, or print what a failure would be sent as.",
    "carillon alarms test ops --alarms alarms.yaml",
  )
    .argument("<channel>", "which, by its name in the alarms of the configuration")
    .option("--alarms <FILE>", "the YAML file of alarms (default: alarms of the configuration)")
    .option("--preview", "send nothing, and print what would be sent")
    .action(
      doing(([channel = ""], options: Parameters<typeof testChannel>[1]) => testChannel(channel, options, terminal)),
    );
  addRules({ add, doing, terminal }, alarms);
}

function addRules({ add, doing, terminal }: Pick<CommandParts, "add" | "doing" | "terminal">, alarms: Command): void {
  const rules = add(alarms, "rules", "See by which rules alarms are found.", "carillon alarms rules")
    .helpCommand(false)
    .action(doing((_, options) => listRules(options, terminal)));
  add(rules, "list", "The same: by which rules alarms are found.", "carillon alarms rules list").action(
    doing((_, options) => listRules(options, terminal)),
  );
  add(rules, "show <rule>", "Show a stored rule.", "carillon alarms rules show settled-by-six").action(
    doing(([name = ""], options) => showRule(name, options, terminal)),
  );
  add(
    rules,
    "set <rule> <file>",
    "Store a rule, or its next version, as a YAML file has it.",
    "carillon alarms rules set settled-by-six rule.yaml",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(
      doing(([name = "", file = ""], options: Parameters<typeof setRule>[2]) => setRule(name, file, options, terminal)),
    );
  add(
    rules,
    "delete <rule>",
    "Remove a stored rule; its open alarms end without a message.",
    "carillon alarms rules delete settled-by-six",
  )
    .option("--reason <TEXT>", "why, for the audit")
    .action(doing(([name = ""], options: Parameters<typeof removeRule>[1]) => removeRule(name, options, terminal)));
}
