import { type Metric, type MetricObject, type OpenMetricsContentType, Registry } from "prom-client";

const openMetrics = "application/openmetrics-text";

/** Returns true if a scraper accepts OpenMetrics and does not prefer Prometheus's text format. @param accept its Accept header */
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

/** The body of the answer to a scrape, and its content type. */
export interface Exposed {
  contentType: string;
  text: string;
}

/**
 * Creates a registry for metrics that are shown in Prometheus's text format and in OpenMetrics. It is a registry of OpenMetrics,
 * because prom-client accepts exemplars only in such a registry; `exposed` converts to the other format.
 */
export function registryOfBoth(): Registry<OpenMetricsContentType> {
  const registry = new Registry<OpenMetricsContentType>();
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
  return registry;
}

/** Returns the metrics of a registry in the format that the scraper prefers. @param accept the Accept header of its request */
export async function exposed(registry: Registry<OpenMetricsContentType>, accept?: string): Promise<Exposed> {
  const open = prefersOpenMetrics(accept);
  const shown = open ? registryOfBoth() : new Registry();
  for (const metric of registry.getMetricsAsArray())
    shown.registerMetric((open && metric.type === counter ? renamed(metric) : metric) as unknown as Metric);
  return { contentType: shown.contentType, text: await shown.metrics() };
}

/** prom-client declares the types of metrics as numbers, but returns them as words. */
const counter = "counter" as unknown as MetricObject["type"];

/**
 * Returns the metric under the name that OpenMetrics requires for a counter, without the suffix of its samples. prom-client would
 * rename the counter itself, and so change Prometheus's text format too.
 */
function renamed(metric: MetricObject) {
  const name = metric.name.replace(/_total$/, "");
  const { get } = metric as unknown as { get: () => Promise<MetricObject> };
  return { name, help: metric.help, type: metric.type, get: async () => ({ ...(await get.call(metric)), name }) };
}
