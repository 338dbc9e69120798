/**
 * Returns a UUID in the form that the server stores, or `null` if the text is not a UUID. Tools also write UUIDs in capitals, in braces and without
 * hyphens.
 */
export function storedUuid(text: string): string | null {
  const bare = text
    .trim()
    .toLowerCase()
    .replace(/^\{(.*)\}$/, '$1');
  if (!/^(?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.test(bare)) return null;
  return bare.replaceAll('-', '').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}
