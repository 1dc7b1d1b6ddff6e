import { Select } from "@mantine/core";
import { type ReactNode, useRef } from "react";
import { zoneNamed, zones } from "./zones.ts";

const shownMost = 50;

/** A field for a time zone. A full name is taken with Enter, or when the field loses focus; a part of a name suggests zones. */
export function ZoneField({
  value,
  label,
  description,
  onChange,
}: {
  value: string;
  label: string;
  description?: ReactNode;
  onChange: (zone: string) => void;
}) {
  const typed = useRef(value);
  const take = (): boolean => {
    const named = zoneNamed(typed.current);
    if (named !== undefined && named !== value) onChange(named);
    return named !== undefined;
  };
  return (
    <Select
      label={label}
      description={description}
      data={zones.includes(value) ? zones : [value, ...zones]}
      searchable
      selectFirstOptionOnChange
      limit={shownMost}
      allowDeselect={false}
      value={value}
      onChange={(zone) => zone && onChange(zone)}
      onSearchChange={(text) => {
        typed.current = text;
      }}
      onKeyDownCapture={(event) => {
        if (event.key === "Enter" && !event.nativeEvent.isComposing && take()) event.preventDefault();
      }}
      onBlur={take}
    />
  );
}
