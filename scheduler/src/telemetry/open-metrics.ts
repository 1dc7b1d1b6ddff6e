import { type Metric, type MetricObject, type OpenMetricsContentType, Registry } from "prom-client";

const openMetrics = "application/openmetrics-text";

/** Whether a scraper prefers OpenMetrics to Prometheus' text form. @param accept the Accept header of its request */
export function prefersOpenMetrics(accept = ""): boolean {
  const weights = new Map<string, number>();
  for (const range of accept.toLowerCase().split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    const weight = parameters.find((one) => one.startsWith("q="))?.slice(2);
    weights.set(type, Math.max(weights.get(type) ?? 0, weight === undefined ? 1 : Number(weight) || 0));
  }
  const wish = weights.get(openMetrics) ?? 0;
  return wish > 0 && wish >= (weights.get("text/plain") ?? 0);
}

/** The answer to a scrape. */
export interface Exposed {
  contentType: string;
  text: string;
}

/**
 * A registry for metrics that are shown in both forms. prom-client takes exemplars only in one of OpenMetrics, and shows a registry in one
 * form.
 */
export function registryOfBoth(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

/** Shows the metrics of a registry in the form that the scraper prefers. @param accept the Accept header of its request */
export async function exposed(registry: Registry<OpenMetricsContentType>, accept?: string): Promise<Exposed> {
  const open = prefersOpenMetrics(accept);
  const shown = open ? registryOfBoth() : new Registry();
  for (const metric of registry.getMetricsAsArray())
    shown.registerMetric((open && metric.type === counter ? renamed(metric) : metric) as unknown as Metric);
  return { contentType: shown.contentType, text: await shown.metrics() };
}

/** prom-client gives the types of metrics as words, and declares them as numbers. */
const counter = "counter" as unknown as MetricObject["type"];

/** OpenMetrics names a counter without the suffix of its samples. prom-client would rename the counter itself, for Prometheus' form too. */
function renamed(metric: MetricObject) {
  const name = metric.name.replace(/_total$/, "");
  const { get } = metric as unknown as { get: () => Promise<MetricObject> };
  return { name, help: metric.help, type: metric.type, get: async () => ({ ...(await get.call(metric)), name }) };
}
