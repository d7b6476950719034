import { computed, signal } from '@preact/signals';

/** The page's place below /console/. Its state is in the URL only, so that Back and links work. */
type Here = { path: string; query: URLSearchParams };

export const base = '/console/';

const read = (): Here => ({
  path: location.pathname.slice(base.length - 1),
  query: new URLSearchParams(location.search),
});

export const here = signal(read());

/** The path in pieces: `/devices/1` is `['devices', '1']`. */
export const pieces = computed(() => here.value.path.split('/').filter(Boolean));

/** The query that each path last had: a link back to a list keeps its filters and its page. */
const last = new Map<string, string>();
const remember = () => last.set(here.value.path, location.search);
remember();

/** A path below /console/ with the query that it last had. */
export const asLeft = (path: string): string => path + (last.get(`/${path}`) ?? '');

addEventListener('popstate', () => {
  here.value = read();
  remember();
});

/** Goes to a path below /console/, such as `alarms?state=closed`. */
export function navigate(to: string, { replace = false } = {}): void {
  const url = base + to.replace(/^\//, '');
  // No new entry for Back if the URL stays the same.
  if (url === location.pathname + location.search) return;
  if (replace) history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  const before = here.value;
  here.value = read();
  remember();
  // Another page, or the next page of a list.
  const isNew = (name: string) => here.value.query.get(name) !== before.query.get(name);
  if (here.value.path !== before.path || isNew('cursor')) scrollTo(0, 0);
}

/** The current path with some parameters changed; the others stay, and empty ones are removed. */
export function hereWith(changes: Record<string, string>): string {
  const { path, query } = here.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes))
    if (value === '') next.delete(name);
    else next.set(name, value);
  const text = next.toString();
  return path + (text === '' ? '' : `?${text}`);
}

/** Changes parameters of the query. */
export const setQuery = (changes: Record<string, string>, options?: { replace?: boolean }): void =>
  navigate(hereWith(changes), options);

export const queryOf = (name: string): string => here.value.query.get(name) ?? '';
