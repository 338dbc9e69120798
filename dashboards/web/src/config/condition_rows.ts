// Conditions of overrides as rows of a form that must all match. Other conditions are edited as JSON. Pure.

export type Condition = Record<string, unknown>;

export interface ConditionRow {
  field: FieldName;
  not: boolean;
  /** The text as typed: values separated by commas, a version requirement, `100-200`, or a percentage. */
  text: string;
  /** The salt of a percentage. Missing for other rows. */
  salt?: string;
}

export const FIELDS = [
  { name: 'percentage', label: 'Share of installs (%)', hint: '10', kind: 'percentage' },
  { name: 'app_version', label: 'App version', hint: '>=4.12, <5', kind: 'text', seen: true },
  { name: 'build', label: 'Build', hint: '1200-1300', kind: 'build', seen: true },
  { name: 'os_name', label: 'OS', hint: 'android, ios', kind: 'list', seen: true },
  { name: 'os_version', label: 'OS version', hint: '>=14', kind: 'text', seen: true },
  { name: 'device_class', label: 'Device class', hint: 'low, mid', kind: 'list', seen: true },
  { name: 'device_model', label: 'Device model', hint: 'SM-A*, Pixel 4', kind: 'list', seen: true },
  { name: 'network', label: 'Network', hint: 'wifi, cellular_4g', kind: 'list', seen: true },
  { name: 'locale', label: 'Locale', hint: 'de, pt-BR', kind: 'list', seen: true },
  { name: 'app_id', label: 'App', hint: 'com.example.shop', kind: 'list', seen: true },
  { name: 'sdk_version', label: 'SDK version', hint: '>=0.3', kind: 'text', seen: true },
  { name: 'user_id', label: 'User', hint: 'u-17, u-18', kind: 'list' },
  { name: 'install_id', label: 'Install', hint: 'an install id', kind: 'list' },
] as const;

export type Field = (typeof FIELDS)[number] & { seen?: boolean };
export type FieldName = (typeof FIELDS)[number]['name'];

export function fieldOf(name: string): Field | undefined {
  return FIELDS.find((one) => one.name === name);
}

/** `null` if rows cannot express the condition. */
export function toRows(condition: unknown): ConditionRow[] | null {
  if (!isObject(condition)) return null;
  const parts: unknown = 'all' in condition ? condition.all : [condition];
  if (!Array.isArray(parts)) return null;
  const rows = parts.map(toRow);
  return rows.every((row) => row !== null) ? rows : null;
}

/** An empty row becomes an empty condition, for which the server reports a fault. */
export function fromRows(rows: ConditionRow[]): Condition {
  const parts = rows.map(fromRow);
  return parts.length === 1 ? parts[0]! : { all: parts };
}

function toRow(condition: unknown): ConditionRow | null {
  if (!isObject(condition)) return null;
  const [name, ...others] = Object.keys(condition);
  if (name === undefined || others.length > 0) return null;
  if (name === 'not') {
    const inner = toRow(condition.not);
    return inner && !inner.not ? { ...inner, not: true } : null;
  }
  const field = fieldOf(name);
  if (!field) return null;
  const read = textOf(field.kind, condition[name]);
  return read === null ? null : { field: field.name, not: false, ...read };
}

function textOf(kind: string, value: unknown): { text: string; salt?: string } | null {
  if (kind === 'list') {
    const fits = Array.isArray(value) && value.every((one) => typeof one === 'string' && !one.includes(','));
    return fits ? { text: value.join(', ') } : null;
  }
  if (kind === 'text') return typeof value === 'string' ? { text: value } : null;
  if (!isObject(value)) return null;
  if (kind === 'percentage') {
    if (typeof value.percent !== 'number') return null;
    const salt = typeof value.salt === 'string' ? { salt: value.salt } : {};
    return { text: String(value.percent), ...salt };
  }
  return { text: `${value.min ?? ''}-${value.max ?? ''}` };
}

/** The known values that a row contains. A version requirement contains a known value only if the requirement is exact. */
export function namedIn(row: ConditionRow): string[] {
  const text = row.text.trim();
  switch (fieldOf(row.field)?.kind) {
    case 'list':
      return valueOf(row) as string[];
    case 'text': {
      const exact = requirement(text);
      return exact.startsWith('=') ? [exact.slice(1).trim()] : [];
    }
    default:
      return text === '' ? [] : [text];
  }
}

/** The text of a row with these values. Lists contain all values. Other rows contain only the value that was chosen last. */
export function textNaming(field: FieldName, values: string[]): string {
  const kind = fieldOf(field)?.kind;
  if (kind === 'list') return values.join(', ');
  const last = values.at(-1) ?? '';
  return kind === 'text' && last !== '' ? `=${last}` : last;
}

function fromRow(row: ConditionRow): Condition {
  const leaf = { [row.field]: valueOf(row) };
  return row.not ? { not: leaf } : leaf;
}

function valueOf(row: ConditionRow): unknown {
  const text = row.text.trim();
  switch (fieldOf(row.field)?.kind) {
    case 'list':
      return text
        .split(',')
        .map((one) => one.trim())
        .filter((one) => one !== '');
    case 'percentage':
      // Text that is not a number is sent unchanged, so that the server reports the fault.
      return { percent: number(text), ...(row.salt ? { salt: row.salt } : {}) };
    case 'build': {
      const [min = '', max] = text.split('-').map((one) => one.trim());
      const range: Record<string, unknown> = {};
      if (min) range.min = number(min);
      if (max ?? min) range.max = number(max ?? min);
      return range;
    }
    default:
      return requirement(text);
  }
}

/** A version without an operator means this version: `4.12.0` becomes `=4.12.0`, which the server accepts. */
function requirement(text: string): string {
  return /^\d[\w.+-]*$/.test(text) ? `=${text}` : text;
}

function number(text: string): number | string {
  const value = Number(text);
  return text !== '' && Number.isFinite(value) ? value : text;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
