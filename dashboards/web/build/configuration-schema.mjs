// Prints the schema of the remote configuration from the API document as JSON, for the form that edits the configuration.
import { readFileSync } from 'node:fs';

const document = JSON.parse(readFileSync(new URL('../../../server/openapi.json', import.meta.url), 'utf8'));
const { base, overrides } = document.components.schemas.Configuration.properties;
console.log(JSON.stringify({ base, overrides: { most: overrides.maxItems } }));
