import type { ReactNode } from "react";
import { Wide } from "../layout/page.tsx";
import css from "./table.module.css";

/** Rows under heads. @param className says what room a cell has (`--cell`), and what else is its own */
export function Table({
  label,
  heads,
  className,
  children,
}: {
  label: string;
  heads: string[];
  className: string | undefined;
  children: ReactNode;
}) {
  return (
    <Wide label={label}>
      <table className={`${css.table} ${className}`}>
        <thead>
          <tr>
            {heads.map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Wide>
  );
}
