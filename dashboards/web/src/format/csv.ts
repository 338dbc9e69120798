// Tables as files for spreadsheets (RFC 4180). Pure except for `download`.

export function csv(rows: (string | number | null | undefined)[][]): string {
  return rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

/** Quotes text that a spreadsheet would run as a formula. Spreadsheets skip blanks and invisible characters before a sign. */
function cell(value: string | number | null | undefined): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const safe = /^([\p{Z}\p{C}\p{M}]*[=+@＝＋－＠-]|[\t\r\n])/u.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function download(name: string, text: string, type = 'text/csv') {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
