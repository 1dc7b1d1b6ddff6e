import {
  type Attributes,
  type BatchObservableResult,
  metrics,
  type Observable,
  type Histogram as Recorder,
} from "@opentelemetry/api";
import type { Histogram, MetricObject, MetricObjectWithValues, MetricValue } from "prom-client";
import { version } from "../base/version.ts";

/** The properties of a registry's metrics that prom-client does not declare. */
interface Kept extends MetricObject {
  get(): Promise<MetricObjectWithValues<MetricValue<string>>>;
  upperBounds: number[];
}

/**
 * Exports metrics to the meter that the program has registered: histograms as they are observed, counters and gauges whenever the
 * program's reader collects.
 * @param refresh sets the gauges
 * @returns a function that ends the export
 */
export function exportMetrics(kept: readonly MetricObject[], refresh: () => Promise<void>): () => void {
  const meter = metrics.getMeter("carillon", version);
  const ends: (() => void)[] = [];
  const read = new Map<Observable, Kept>();
  /** The label sets of each gauge at the last collection. */
  const shown = new Map<Observable, Map<string, Attributes>>();
  for (const metric of kept as Kept[]) {
    const { help: description } = metric;
    // Plain numbers have no unit, because an exporter for Prometheus adds "_ratio" to the name of a gauge whose unit is "1".
    const options = { description, ...(metric.name.endsWith("_seconds") ? { unit: "s" } : {}) };
    // The name lacks the suffixes, because an exporter for Prometheus adds them.
    const name = metric.name.replace(/_(?:seconds|total)$/, "");
    const type = String(metric.type);
    if (type === "histogram") {
      const advice = { explicitBucketBoundaries: metric.upperBounds };
      ends.push(mirrored(metric as unknown as Histogram, meter.createHistogram(name, { ...options, advice })));
    } else if (type === "counter") read.set(meter.createObservableCounter(name, options), metric);
    else {
      const gauge = meter.createObservableGauge(name, options);
      read.set(gauge, metric);
      shown.set(gauge, new Map());
    }
  }
  let hasEnded = false;
  /**
   * Observes the present values. A gauge's label set that has no value any more is observed as NaN, because the SDK would repeat
   * its last value.
   */
  const collect = async (result: BatchObservableResult) => {
    if (!hasEnded) await refresh();
    for (const [observable, metric] of read) {
      const before = shown.get(observable);
      const values = hasEnded ? [] : (await metric.get()).values;
      const present = new Map(values.map(({ labels }) => [JSON.stringify(labels), { ...labels }]));
      for (const { value, labels } of values) result.observe(observable, value, { ...labels });
      for (const [key, labels] of before ?? []) if (!present.has(key)) result.observe(observable, Number.NaN, labels);
      if (before) shown.set(observable, present);
    }
    if (hasEnded) meter.removeBatchObservableCallback(collect, observables);
  };
  const observables = [...read.keys()];
  meter.addBatchObservableCallback(collect, observables);
  ends.push(() => {
    hasEnded = true;
  });
  return () => {
    for (const end of ends) end();
  };
}

/** Passes all further observations of the histogram to the recorder too. @returns a function that ends this */
function mirrored(histogram: Histogram, recorder: Recorder): () => void {
  const observe = histogram.observe as Observe;
  const both: Observe = (first, value) => {
    observe.call(histogram, first, value);
    if (typeof first === "number") recorder.record(first);
    else if (value !== undefined) recorder.record(value, first as Attributes);
    else {
      const { value: seconds, labels } = first as { value: number; labels?: Attributes };
      recorder.record(seconds, labels);
    }
  };
  histogram.observe = both;
  return () => {
    histogram.observe = observe;
  };
}

/** The two forms of `observe`: a value alone, or labels and a value; both may be given as one object. */
type Observe = (first: number | object, value?: number) => void;
