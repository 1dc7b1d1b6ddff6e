import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { Answer } from "../api/call.ts";
import { useWords } from "../messages/words.ts";
import { RunLink, TaskLink } from "../parts/value/links.tsx";
import { plain } from "../parts/value/plain.ts";
import { labelsText } from "../runs/labels.ts";
import css from "./operations.module.css";

type Filter = Answer<"getOperation">["filter"];

export function OperationLink({ operation, children }: { operation: number; children: ReactNode }) {
  return (
    <Link to="/operations/$operation" params={{ operation: String(operation) }} className={css.link}>
      {children}
    </Link>
  );
}

/** An operation's filter as pairs of a label and a value. */
export function FilterText({ filter }: { filter: Filter }) {
  const words = useWords();
  const { t } = words;
  const moment = (iso: string) => words.when(Date.parse(iso));
  const given: [string, ReactNode][] = [
    ...(filter.task ? [[t("filter.task"), <TaskLink key="task" task={filter.task} />] as [string, ReactNode]] : []),
    ...(filter.matching ? [[t("filter.matching"), plain(filter.matching)] as [string, ReactNode]] : []),
    ...(filter.group ? [[t("filter.group"), plain(filter.group)] as [string, ReactNode]] : []),
    ...(filter.namespaces ? [[t("filter.namespaces"), filter.namespaces.join(", ")] as [string, ReactNode]] : []),
    ...(filter.fingerprint ? [[t("filter.fingerprint"), filter.fingerprint] as [string, ReactNode]] : []),
    ...(filter.labels ? [[t("filter.labels"), plain(labelsText(filter.labels))] as [string, ReactNode]] : []),
    ...(filter.run ? [[t("noun.run"), <RunLink key="run" run={filter.run} />] as [string, ReactNode]] : []),
    ...(filter.states?.length
      ? [[t("filter.states"), filter.states.map((one) => t(`state.${one}`)).join(", ")] as [string, ReactNode]]
      : []),
    ...(filter.since ? [[t("filter.since"), moment(filter.since)] as [string, ReactNode]] : []),
    ...(filter.until ? [[t("filter.until"), moment(filter.until)] as [string, ReactNode]] : []),
  ];
  if (given.length === 0) return <span>{t("operations.everything")}</span>;
  return (
    <span className={css.filter}>
      {given.map(([name, value]) => (
        <span key={name}>
          <span className="soft">{name}</span> {value}
        </span>
      ))}
    </span>
  );
}
