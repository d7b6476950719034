import { useEffect, useRef, useState } from 'preact/hooks';
import { queryOf, setQuery } from '../../app/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { t } from '../../text/t.ts';

const pauseMs = 200;

/** Searches while somebody types; the URL follows, and Back leads to before the search. */
export function SearchField() {
  const inUrl = queryOf('search');
  const [text, setText] = useState(inUrl);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const asked = useRef(inUrl);
  // Changed from elsewhere: by Back, or by a link that shows all.
  useEffect(() => {
    if (inUrl !== asked.current) setText(inUrl);
    asked.current = inUrl;
  }, [inUrl]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (next: string) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      const search = next.trim();
      const isRefined = asked.current !== '' && search !== '';
      asked.current = search;
      setQuery({ search, cursor: '', from: '' }, { replace: isRefined });
    }, pauseMs);
  };
  return (
    <label class="search">
      <span class="hidden">{t('fleet.search')}</span>
      <Icon name="search" />
      <input
        type="search"
        value={text}
        placeholder={t('fleet.search')}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
    </label>
  );
}
