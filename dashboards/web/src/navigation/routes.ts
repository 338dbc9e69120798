// All pages: path, title in the navigation, and file. To add a page, add a file to `pages/` and a route here.

import type { Component } from 'svelte';

export const GROUPS = ['Performance', 'Alerts', 'Control', 'Admin'] as const;

export interface Route {
  path: string;
  title: string;
  /** The heading in the navigation. A page without one is not in the navigation. */
  group?: (typeof GROUPS)[number];
  /** Shows the filter bar. */
  filters?: boolean;
  /** The route also matches paths below its own path, such as `/traces/<id>`. */
  nested?: boolean;
  load: () => Promise<{ default: Component }>;
}

export const ROUTES: Route[] = [
  { path: '/', title: 'Overview', group: 'Performance', filters: true, load: () => import('../pages/Overview.svelte') },
  {
    path: '/versions',
    title: 'Versions',
    group: 'Performance',
    filters: true,
    nested: true,
    load: () => import('../pages/Versions.svelte'),
  },
  {
    path: '/jank',
    title: 'Jank',
    group: 'Performance',
    filters: true,
    nested: true,
    load: () => import('../pages/Jank.svelte'),
  },
  { path: '/hangs', title: 'Hangs', group: 'Performance', filters: true, load: () => import('../pages/Hangs.svelte') },
  {
    path: '/frames',
    title: 'Frames',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/Frames.svelte'),
  },
  {
    path: '/page-loads',
    title: 'Page loads',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/PageLoads.svelte'),
  },
  {
    path: '/app-starts',
    title: 'App starts',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/AppStarts.svelte'),
  },
  { path: '/spans', title: 'Spans', group: 'Performance', filters: true, load: () => import('../pages/Spans.svelte') },
  {
    path: '/traces',
    title: 'Traces',
    group: 'Performance',
    filters: true,
    nested: true,
    load: () => import('../pages/Traces.svelte'),
  },
  {
    path: '/sessions',
    title: 'Sessions',
    group: 'Performance',
    filters: true,
    nested: true,
    load: () => import('../pages/Sessions.svelte'),
  },
  {
    path: '/traffic',
    title: 'Traffic',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/Traffic.svelte'),
  },
  {
    path: '/installs',
    title: 'Installs',
    filters: true,
    nested: true,
    load: () => import('../pages/Installs.svelte'),
  },
  {
    path: '/resources',
    title: 'Resources',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/Resources.svelte'),
  },
  {
    path: '/ingest',
    title: 'Ingest health',
    group: 'Performance',
    filters: true,
    load: () => import('../pages/IngestHealth.svelte'),
  },
  {
    path: '/incidents',
    title: 'Incidents',
    group: 'Alerts',
    nested: true,
    load: () => import('../pages/Incidents.svelte'),
  },
  {
    path: '/alert-rules',
    title: 'Alert rules',
    group: 'Alerts',
    nested: true,
    load: () => import('../pages/AlertRules.svelte'),
  },
  {
    path: '/notifications',
    title: 'Notifications',
    group: 'Alerts',
    load: () => import('../pages/Notifications.svelte'),
  },
  { path: '/mutes', title: 'Mutes', group: 'Alerts', load: () => import('../pages/Mutes.svelte') },
  { path: '/config', title: 'Remote config', group: 'Control', load: () => import('../pages/RemoteConfig.svelte') },
  { path: '/rules', title: 'Stack rules', group: 'Control', load: () => import('../pages/Rules.svelte') },
  { path: '/symbols', title: 'Symbols', group: 'Control', load: () => import('../pages/Symbols.svelte') },
  { path: '/projects', title: 'Projects', group: 'Admin', load: () => import('../pages/Projects.svelte') },
  { path: '/keys', title: 'Ingest keys', group: 'Admin', load: () => import('../pages/IngestKeys.svelte') },
  { path: '/device-keys', title: 'Device keys', group: 'Admin', load: () => import('../pages/DeviceKeys.svelte') },
  { path: '/tokens', title: 'API tokens', group: 'Admin', load: () => import('../pages/ApiTokens.svelte') },
  { path: '/people', title: 'People', group: 'Admin', load: () => import('../pages/People.svelte') },
  { path: '/data', title: 'Data', group: 'Admin', load: () => import('../pages/Data.svelte') },
  { path: '/audit', title: 'Audit log', group: 'Admin', load: () => import('../pages/Audit.svelte') },
  { path: '/start', title: 'Get started', load: () => import('../pages/Start.svelte') },
  { path: '/account', title: 'Account', load: () => import('../pages/Account.svelte') },
];

export function routeOf(path: string): Route | undefined {
  return ROUTES.find((route) => route.path === path || (route.nested && path.startsWith(`${route.path}/`)));
}
