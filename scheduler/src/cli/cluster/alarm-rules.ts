import type { AlarmStore } from "../../alarms/alarm-store.ts";
import type { RuleContent, StoredRule } from "../../alarms/stored-rules.ts";
import type { Client } from "../../api/client.ts";
import type { Answer } from "../../api/contract.ts";
import type { Change } from "../../base/change.ts";
import type { ClusterAlarms } from "../nodes/cluster.ts";
import { why } from "./calls.ts";

type Rules = Pick<ClusterAlarms, "rules" | "rule" | "setRule" | "removeRule">;

/**
 * Alarm rules through a store. Only stored rules are listed: the rules of nodes' settings are not in the store, only a server lists them.
 */
export const storeRules = (alarms: AlarmStore, change: (reason: string) => Change): Rules => ({
  rules: async () => ({ given: [], stored: await alarms.rules() }),
  rule: (name) => alarms.rule(name),
  async setRule(name, content, reason) {
    const there = (await alarms.rules()).find((rule) => rule.name === name);
    return there
      ? alarms.replaceRule(name, content, change(reason), there.version)
      : alarms.createRule(name, content, change(reason));
  },
  removeRule: (name, reason) => alarms.removeRule(name, change(reason), null),
});

function ruleRecord(rule: Answer<"getAlarmRule">): StoredRule {
  const { name, version, author, reason, bundle, changed, finds: _, ...content } = rule;
  return { name, version, author, reason, bundle, changedMs: Date.parse(changed), content: content as RuleContent };
}

export function serverRules(api: Client): Rules {
  /** Only converts the type: the API accepts the same form, and validates it. */
  const asGiven = (content: RuleContent) =>
    content as Omit<Parameters<Client["createAlarmRule"]>[0], "name" | "reason">;
  return {
    async rules() {
      const { rules, stored } = await api.listAlarmRules();
      return { given: rules, stored: stored.map(ruleRecord) };
    },
    rule: async (alarmRule) => ruleRecord(await api.getAlarmRule({ alarmRule })),
    async setRule(name, content, reason) {
      const there = (await api.listAlarmRules()).stored.find((rule) => rule.name === name);
      const given = { ...asGiven(content), ...why(reason) };
      return ruleRecord(
        there
          ? await api.setAlarmRule({ alarmRule: name, ...given }, { ifVersion: there.version })
          : await api.createAlarmRule({ name, ...given }),
      );
    },
    removeRule: async (alarmRule, reason) => void (await api.removeAlarmRule({ alarmRule, ...why(reason) })),
  };
}
