import { computed, effect, signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { here } from '../../app/router.ts';
import { accountOf } from '../../app/session.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { t } from '../../text/t.ts';

/** A list as somebody wants to see it again: its path and its query, without the page. */
type View = { name: string; path: string; query: string };

/** Kept in this browser, for each account. What a view shows is all in its URL, so a link does the same elsewhere. */
const views = signal<readonly View[]>([]);
const key = computed(() => `sensorium-views/${accountOf()?.accountAuthUuid ?? ''}`);

function read(name: string): View[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(name) ?? '[]');
    return Array.isArray(kept) ? kept.filter(isView) : [];
  } catch {
    // Turned off, or written by something else.
    return [];
  }
}

const isView = (one: unknown): one is View =>
  typeof one === 'object' &&
  one !== null &&
  ['name', 'path', 'query'].every((member) => typeof (one as View)[member as 'name'] === 'string');

effect(() => void (views.value = read(key.value)));
// Another tab has changed them.
addEventListener('storage', () => void (views.value = read(key.value)));

function keep(next: readonly View[]): void {
  views.value = next;
  try {
    localStorage.setItem(key.value, JSON.stringify(next));
  } catch {
    // Full or turned off: they last as long as the page.
  }
}

/** The query without the place in the list. */
function queryNow(): string {
  const query = new URLSearchParams(here.value.query);
  for (const name of ['cursor', 'from']) query.delete(name);
  return query.toString();
}

/** The views of this list by name, and a field that adds the one on the screen. */
export function Views() {
  const [name, setName] = useState('');
  const { path } = here.value;
  const own = views.value.filter((view) => view.path === path);
  const query = queryNow();
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    const text = name.trim();
    if (text === '') return;
    const others = views.value.filter((view) => view.path !== path || view.name !== text);
    keep([...others, { name: text, path, query }]);
    setName('');
  };
  return (
    <>
      <ul class="views">
        {own.map((view) => (
          <li key={view.name}>
            <Link
              to={path.slice(1) + (view.query === '' ? '' : `?${view.query}`)}
              class="link"
              aria-current={view.query === query ? 'true' : undefined}
            >
              {view.name}
            </Link>
            <button
              type="button"
              class="button"
              aria-label={t('views.remove', { name: view.name })}
              onClick={() => keep(views.value.filter((each) => each !== view))}
            >
              <Icon name="bin" />
            </button>
          </li>
        ))}
      </ul>
      <form class="with-button" onSubmit={save}>
        <input
          value={name}
          maxLength={60}
          autocomplete="off"
          aria-label={t('views.name')}
          placeholder={t('views.name')}
          onInput={({ currentTarget }) => setName(currentTarget.value)}
        />
        <button type="submit" class="button">
          {t('views.save')}
        </button>
      </form>
    </>
  );
}
