// Commands that need no server: pages, projects and actions.

import { session } from '../api/session.svelte';
import { sayProblem } from '../components/toast.svelte';
import { refresh } from '../data/refresh.svelte';
import { browserZone, zone } from '../format/zone.svelte';
import { copyFixedLink } from '../layout/fixed_link';
import { theme } from '../layout/theme.svelte';
import { href, location, navigate, setFilters } from '../navigation/router.svelte';
import { ROUTES, routeOf } from '../navigation/routes';
import type { Command } from './matching';

/** The pages outside the navigation that need no id. */
const ALONE = ['/start', '/account'];

export function pages(): Command[] {
  return ROUTES.filter(({ group, path }) => group || ALONE.includes(path)).map(({ path, title, group = '' }) => ({
    ...{ id: `page-${path}`, section: 'Pages', label: title, note: group },
    run: () => navigate(href(path)),
  }));
}

export function projects(): Command[] {
  return session.projects
    .filter(({ id }) => id !== location.project)
    .map(({ id, name }) => ({
      ...{ id: `project-${id}`, section: 'Switch project', label: name, note: id === name ? undefined : id },
      words: 'switch project',
      run: () => setFilters({ ...location.filters, project: id, chosen: {}, baseVersion: '' }),
    }));
}

export function actions(): Command[] {
  const isDark = theme.current === 'dark';
  const other = zone.name === 'UTC' ? browserZone : 'UTC';
  const hasPeriod = routeOf(location.path)?.filters ?? false;
  const all: (Omit<Command, 'section' | 'id'> & { isLeftOut?: boolean })[] = [
    {
      label: hasPeriod ? 'Copy link with fixed time' : 'Copy link',
      words: 'share address url',
      run: () => void copyFixedLink(),
    },
    { label: 'Refresh now', words: 'reload update', run: () => void refresh.run(), isLeftOut: !hasPeriod },
    {
      label: isDark ? 'Use light colours' : 'Use dark colours',
      words: 'change theme mode',
      run: () => theme.toggle(),
    },
    {
      label: `Show times in ${other}`,
      words: 'time zone',
      run: () => zone.choose(other),
      isLeftOut: other === zone.name,
    },
    { label: 'Log out', words: 'sign out end session', run: () => void session.logOut().catch(sayProblem) },
  ];
  return all
    .filter(({ isLeftOut }) => !isLeftOut)
    .map((one) => ({ ...one, id: `action-${one.label}`, section: 'Actions' }));
}
