/** Reads Grafana's dashboard and Prometheus's rules from deploy/ for the tests. */
import { readFileSync } from "node:fs";
import { parse } from "yaml";

const deploy = new URL("../../../deploy/", import.meta.url);

interface Source {
  type: string;
  uid: string;
}

export interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { h: number; w: number; x: number; y: number };
  datasource?: Source;
  targets?: { refId: string; datasource: Source; expr: string; legendFormat: string }[];
}

export interface Dashboard {
  schemaVersion: number;
  panels: Panel[];
  templating: { list: { name: string; type: string; definition?: string }[] };
  annotations: { list: { expr?: string }[] };
}

export interface Rule {
  alert?: string;
  record?: string;
  expr: string;
  for?: string;
  labels?: Record<string, string>;
  annotations?: { summary: string; description: string };
}

export const rulesText = readFileSync(new URL("prometheus/carillon.rules.yml", deploy), "utf8");
export const rules = (parse(rulesText) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
export const dashboard = JSON.parse(readFileSync(new URL("grafana/carillon.json", deploy), "utf8")) as Dashboard;

/** Returns an expression of the dashboard as Grafana sends it if every variable selects all values. */
export const filled = (expression: string): string =>
  expression.replaceAll("$__rate_interval", "15s").replaceAll(/\$(?:job|namespace|group)\b/g, ".*");

const keywords = new Set(["and", "or", "unless", "bool", "offset"]);

/** Returns the names of the metrics that an expression of PromQL reads. */
export function metricsOf(expression: string): string[] {
  const bare = expression
    .replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
    .replaceAll(/\{[^}]*\}/g, "{}")
    .replaceAll(/\[[^\]]*\]/g, "")
    .replaceAll(/\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)/g, "");
  return [...bare.matchAll(/(?<![\w:])[a-zA-Z_:][\w:]*(?!\w|\s*\()/g)]
    .map(([name]) => name)
    .filter((name) => !keywords.has(name));
}

/** Returns the labels that a legend shows. */
export const legendOf = (text: string): string[] => [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
