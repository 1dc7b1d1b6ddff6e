import { ActionIcon, Button, NumberInput, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { IconPlus, IconTrash } from "@tabler/icons-react";
import { useState } from "react";
import { useWords } from "../../messages/words.ts";
import { plain } from "../../parts/value/plain.ts";
import { type Field, fieldOf, firstValue, placed, type Schema, valueAt } from "./field-schema.ts";
import css from "./payload-form.module.css";

export type Path = readonly (string | number)[];
export type Issues = ReadonlyMap<string, string>;
export const placeText = (path: Path): string => JSON.stringify(path);

interface Given {
  schema: Schema;
  root: Schema;
  path: Path;
  value: unknown;
  issues: Issues;
  required: boolean;
  onChange: (path: Path, value: unknown) => void;
}

/** Edits a payload as a form that follows its schema. Parts that the schema leaves open are edited as JSON within the form. */
export function PayloadForm({
  schema,
  value,
  issues,
  onChange,
}: {
  schema: Schema;
  value: unknown;
  issues: Issues;
  onChange: (value: unknown) => void;
}) {
  const change = (path: Path, is: unknown) => onChange(placed(value, path, is));
  return <One schema={schema} root={schema} path={[]} value={value} issues={issues} required onChange={change} />;
}

function One(given: Given) {
  const { t } = useWords();
  const { schema, root, path, value, issues, required, onChange } = given;
  const field = fieldOf(schema, root, path.length);
  const last = path.at(-1);
  const name = field.schema.title ?? (typeof last === "number" ? `${last + 1}` : (last ?? t("run.payload")));
  const error = issues.get(placeText(path));
  const shared = {
    label: plain(name),
    description: field.schema.description ? plain(field.schema.description) : undefined,
    error,
    withAsterisk: required,
  };
  const set = (is: unknown) => onChange(path, is);
  switch (field.kind) {
    case "object":
      return <Group given={given} field={field} name={path.length === 0 ? undefined : plain(name)} />;
    case "list":
      return <List given={given} field={field} name={plain(name)} />;
    case "choice":
      return (
        <Select
          {...shared}
          data={field.values.map((one, at) => ({
            value: String(at),
            label: typeof one === "string" ? one : JSON.stringify(one),
          }))}
          value={indexOf(field.values, value)}
          onChange={(at) => set(at === null ? undefined : field.values[Number(at)])}
          clearable={!required}
          clearButtonProps={{ "aria-label": t("filter.clear") }}
        />
      );
    case "yes-no":
      return (
        <Switch
          label={shared.label}
          description={shared.description}
          error={error}
          checked={value === true}
          onChange={(event) => set(event.currentTarget.checked)}
        />
      );
    case "number":
      return (
        <NumberInput
          {...shared}
          value={typeof value === "number" ? value : ""}
          allowDecimal={!field.whole}
          onChange={(typed) => set(typed === "" ? undefined : Number(typed))}
        />
      );
    case "text":
      return field.format === "long" ? (
        <Textarea
          {...shared}
          autosize
          minRows={2}
          maxRows={8}
          value={typeof value === "string" ? value : ""}
          onChange={(event) =>
            set(event.currentTarget.value === "" && !required ? undefined : event.currentTarget.value)
          }
        />
      ) : (
        <TextInput
          {...shared}
          type={field.format === "email" ? "email" : field.format === "date" ? "date" : "text"}
          placeholder={field.format === "date-time" ? "2026-12-31T23:59:00Z" : field.format === "uri" ? "https://" : ""}
          value={typeof value === "string" ? value : ""}
          onChange={(event) =>
            set(event.currentTarget.value === "" && !required ? undefined : event.currentTarget.value)
          }
        />
      );
    default:
      return <Raw value={value} onChange={set} {...shared} />;
  }
}

function indexOf(values: unknown[], value: unknown): string | null {
  const text = JSON.stringify(value);
  const at = values.findIndex((one) => JSON.stringify(one) === text);
  return at === -1 ? null : String(at);
}

function Group({
  given: { root, path, value, issues, onChange },
  field,
  name,
}: {
  given: Given;
  field: Extract<Field, { kind: "object" }>;
  name: string | undefined;
}) {
  const error = issues.get(placeText(path));
  const fields = field.properties.map(([property, schema, required]) => (
    <One
      key={property}
      schema={schema}
      root={root}
      issues={issues}
      required={required}
      onChange={onChange}
      path={[...path, property]}
      value={valueAt(value, [property])}
    />
  ));
  if (name === undefined)
    return (
      <div className={css.fields}>
        {field.schema.description && <p className="soft">{plain(field.schema.description)}</p>}
        {error && <p className={css.error}>{error}</p>}
        {fields}
      </div>
    );
  return (
    <fieldset className={css.group}>
      <legend>{name}</legend>
      {field.schema.description && <p className="soft">{plain(field.schema.description)}</p>}
      {error && <p className={css.error}>{error}</p>}
      <div className={css.fields}>{fields}</div>
    </fieldset>
  );
}

function List({
  given: { root, path, value, issues, onChange },
  field,
  name,
}: {
  given: Given;
  field: Extract<Field, { kind: "list" }>;
  name: string;
}) {
  const { t } = useWords();
  const items = Array.isArray(value) ? value : [];
  const error = issues.get(placeText(path));
  return (
    <fieldset className={css.group}>
      <legend>{name}</legend>
      {field.schema.description && <p className="soft">{plain(field.schema.description)}</p>}
      {error && <p className={css.error}>{error}</p>}
      <ol className={css.items}>
        {items.map((item, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: an item has no key but its position.
          <li key={at}>
            <div className={css.item}>
              <One
                schema={field.items}
                root={root}
                issues={issues}
                onChange={onChange}
                required
                path={[...path, at]}
                value={item}
              />
            </div>
            <ActionIcon
              variant="default"
              size={30}
              aria-label={t("payload.without", { name, n: at + 1 })}
              onClick={() =>
                onChange(
                  path,
                  items.filter((_, place) => place !== at),
                )
              }
            >
              <IconTrash size={15} />
            </ActionIcon>
          </li>
        ))}
      </ol>
      <Button
        size="compact-sm"
        variant="default"
        leftSection={<IconPlus size={14} aria-hidden />}
        onClick={() => onChange(path, [...items, firstValue(field.items, root, path.length + 1) ?? null])}
      >
        {t("payload.add", { name })}
      </Button>
    </fieldset>
  );
}

/** Edits a value as JSON. Invalid JSON stays in the field, and the payload keeps its last valid value. */
function Raw({
  value,
  error,
  onChange,
  ...shared
}: {
  value: unknown;
  label: string;
  description: string | undefined;
  error: string | undefined;
  withAsterisk: boolean;
  onChange: (value: unknown) => void;
}) {
  const { t } = useWords();
  const [typed, setTyped] = useState<string>();
  const text = typed ?? (value === undefined ? "" : JSON.stringify(value, null, 2));
  const isWrong = typed !== undefined && typed.trim() !== "" && !isJson(typed);
  return (
    <Textarea
      {...shared}
      description={shared.description ?? t("runNow.json")}
      autosize
      minRows={1}
      maxRows={10}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mono)", fontSize: 13 } }}
      error={isWrong ? t("runNow.noJson") : error}
      value={text}
      onChange={(event) => {
        const given = event.currentTarget.value;
        setTyped(given);
        if (given.trim() === "") onChange(undefined);
        else if (isJson(given)) onChange(JSON.parse(given));
      }}
    />
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // The field shows the error.
    return false;
  }
}
