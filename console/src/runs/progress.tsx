import { useWords } from "../messages/words.ts";
import { Gauge } from "../parts/state/gauge.tsx";
import { Tree } from "../parts/value/tree.tsx";
import { measured } from "./progress-of.ts";
import css from "./run.module.css";

/** Shows the progress that a run has reported: as a bar if `measured` can parse it, otherwise as a JSON tree. */
export function RunProgress({ value }: { value: unknown }) {
  const { t, count, percent } = useWords();
  const label = t("run.progress");
  const found = measured(value);
  if (!found)
    return (
      <div className={css.progress}>
        <span className="soft">{label}</span>
        <Tree value={value} label={label} />
      </div>
    );
  const { done, total, rest } = found;
  return (
    <div className={css.progress}>
      <div className={css.progressTop}>
        <span className="soft">{label}</span>
        <span className="figures">
          {total > 1 && total !== 100 && `${t("log.hits", { at: count(done), n: count(total) })} · `}
          {percent(done / total)}
        </span>
      </div>
      <Gauge done={done} total={total} label={label} />
      {Object.keys(rest).length > 0 && <Tree value={rest} label={label} />}
    </div>
  );
}
