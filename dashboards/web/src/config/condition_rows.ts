// Conditions of overrides as rows of a form: "all of these hold". What does not fit rows is edited as JSON. Pure.

export type Condition = Record<string, unknown>;

export interface ConditionRow {
  field: FieldName;
  not: boolean;
  /** As typed: names with commas between, a version requirement, `100-200`, or a number of percent. */
  text: string;
  /** Of a percentage. */
  salt?: string;
}

export const FIELDS = [
  { name: 'percentage', label: 'Share of installs, %', hint: '10', kind: 'percentage' },
  { name: 'app_version', label: 'App version', hint: '>=4.12, <5', kind: 'text' },
  { name: 'build', label: 'Build', hint: '1200-1300', kind: 'build' },
  { name: 'os_name', label: 'OS', hint: 'android, ios', kind: 'list' },
  { name: 'os_version', label: 'OS version', hint: '>=14', kind: 'text' },
  { name: 'device_class', label: 'Device class', hint: 'low, mid', kind: 'list' },
  { name: 'device_model', label: 'Device model', hint: 'SM-A*, Pixel 4', kind: 'list' },
  { name: 'network', label: 'Network', hint: 'wifi, cellular_4g', kind: 'list' },
  { name: 'locale', label: 'Locale', hint: 'de, pt-BR', kind: 'list' },
  { name: 'app_id', label: 'App', hint: 'com.example.shop', kind: 'list' },
  { name: 'sdk_version', label: 'SDK version', hint: '>=0.3', kind: 'text' },
  { name: 'user_id', label: 'User', hint: 'u-17, u-18', kind: 'list' },
  { name: 'install_id', label: 'Install', hint: 'an install id', kind: 'list' },
] as const;

export type FieldName = (typeof FIELDS)[number]['name'];

export function fieldOf(name: string) {
  return FIELDS.find((one) => one.name === name);
}

/** `null`: this condition is no list of rows. */
export function toRows(condition: unknown): ConditionRow[] | null {
  if (!isObject(condition)) return null;
  const parts: unknown = 'all' in condition ? condition.all : [condition];
  if (!Array.isArray(parts)) return null;
  const rows = parts.map(toRow);
  return rows.every((row) => row !== null) ? rows : null;
}

/** What no row can say, such as an empty list, comes back as an empty condition, which the server explains. */
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
      // A text that is no number is left for the server to refuse by name.
      return { percent: number(text), ...(row.salt ? { salt: row.salt } : {}) };
    case 'build': {
      const [min = '', max] = text.split('-').map((one) => one.trim());
      const range: Record<string, unknown> = {};
      if (min) range.min = number(min);
      if (max ?? min) range.max = number(max ?? min);
      return range;
    }
    default:
      return text;
  }
}

function number(text: string): number | string {
  const value = Number(text);
  return text !== '' && Number.isFinite(value) ? value : text;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
