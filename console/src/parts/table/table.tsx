import type { ReactNode } from "react";
import { Wide } from "../layout/page.tsx";
import css from "./table.module.css";

/** A table with column headings. @param className sets each cell's share of the width (`--cell`), and other styles */
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
