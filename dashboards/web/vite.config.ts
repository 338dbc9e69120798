import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

declare const process: { env: Record<string, string | undefined> };

/** The server to which `npm run dev` forwards requests. */
const server = process.env.UNJANK_SERVER ?? 'http://127.0.0.1:8080';

/** What the pages of measurements and of administration share. */
const SHARED =
  /src\/(components\/(?!FlameGraph|flame_layout)|evidence|versions\/(change|ReleaseMarks)|people\/(MyTeam|directory)|rules\/(owners|Reclassification)|alerts\/rule_signals|keys\/key_state)\b/;

/** Pages that show no measurements. */
const ADMINISTRATION =
  /src\/(account|audit|config|rules|keys|people|projects|storage|scrubbing|erasures|pages\/(Account|Data|RemoteConfig|Rules|Projects|IngestKeys|DeviceKeys|ApiTokens|People|Audit|AcceptInvitation))\b/;

/** Loaded only to show a flame graph. */
const FLAME_GRAPH =
  /src\/(components\/(FlameGraph|flame_layout)|jank\/(StackFlame|Downloads|flame_changes)|spans\/(SpanFlame|span_flame))\b/;

/** Loaded only with the page Sessions. Excludes the list of sessions, which the page of an install also shows. */
const SESSIONS = /src\/(pages\/Sessions|sessions\/(?!SessionsOfInstall|SessionTable|queries))\b/;

/** Loaded only with the pages App starts and Hangs. */
const STARTS_AND_HANGS = /src\/(pages\/(AppStarts|Hangs)|app_starts|hangs)\b/;

/** Loaded only with pages about what arrives, symbol files and notifications. */
const ARRIVALS =
  /src\/(pages\/(Start|Ingest|Symbols|Notifications)|start|ingest|symbols\/(?!missing_text)|notifications)/;

/** Loaded only with the pages Resources and Traffic. */
const TRAFFIC = /src\/(pages\/(Resources|Traffic)|resources\/(?!uptime_growth)|traffic)\b/;

/** Loaded only with the page Versions. */
const RELEASES = /src\/(pages\/Versions|releases\/)/;

/** Loaded only with the pages of incidents and alert rules. Excludes the table of incidents, which the page of a version also shows. */
const ALERTS =
  /src\/(pages\/(Incidents|AlertRules|Mutes)|alerts\/(?!IncidentTable|Severity|stretches|rule_signals|evidence_text|around|mutes))/;

/** Loaded only with the page Traces. Excludes the list of traces, which pages of spans also show. */
const TRACES = /src\/(pages\/Traces|traces\/(?!TraceList|queries|waterfall_layout))/;

/** Loaded only to open the command palette. */
const PALETTE = /src\/palette\b/;
/** Parts of the measurements that load separately. */
const SEPARATE = [FLAME_GRAPH, SESSIONS, STARTS_AND_HANGS, ARRIVALS, TRAFFIC, RELEASES, ALERTS, TRACES, PALETTE];

export default defineConfig({
  plugins: [svelte()],
  build: {
    target: 'es2022',
    // No inlining: the content security policy of the server forbids `data:` URLs for scripts and fonts.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // Few large files compress a fifth better than one file per page. A group also takes the modules that it imports, so
    // the base has the highest priority.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: 'base',
              test: /node_modules|src\/(App|main|api|data|format|layout|navigation)\b|pages\/(Login|SetUp)/,
              priority: 4,
            },
            { name: 'shared', test: SHARED, priority: 3 },
            { name: 'administration', test: ADMINISTRATION, priority: 2 },
            {
              name: 'measurements',
              test: (id) => /src\//.test(id) && !SEPARATE.some((one) => one.test(id)),
              priority: 1,
            },
            { name: 'flame-graph', test: FLAME_GRAPH, priority: 0 },
            { name: 'sessions', test: SESSIONS, priority: 0 },
            { name: 'starts-and-hangs', test: STARTS_AND_HANGS, priority: 0 },
            { name: 'arrivals', test: ARRIVALS, priority: 0 },
            { name: 'traffic', test: TRAFFIC, priority: 0 },
            { name: 'releases', test: RELEASES, priority: 0 },
            { name: 'alerts', test: ALERTS, priority: 0 },
            { name: 'traces', test: TRACES, priority: 0 },
            { name: 'palette', test: PALETTE, priority: 0 },
          ],
        },
      },
    },
  },
  // `npm run dev` serves the source, and forwards API requests to a running server.
  server: { proxy: Object.fromEntries(['/api', '/v1', '/openapi.json'].map((path) => [path, server])) },
  // Texts with times must not depend on the zone of the machine.
  test: { include: ['tests/**/*.test.ts'], env: { TZ: 'UTC' }, css: { include: /(base|tokens)\.css/ } },
});
