import { setQuery } from '../../../app/router.ts';
import { t } from '../../../text/t.ts';
import type { Series } from './point.ts';

/** More than that make a page that nobody looks through. */
const shownFirst = 4;

/** Which senses the URL asks for; without any the first. */
export function shownOf(all: readonly Series[], asked: string): readonly Series[] {
  const names = asked.split(',');
  const found = all.filter(({ sId }) => names.includes(sId));
  return found.length > 0 ? found : all.slice(0, shownFirst);
}

type SenseChoiceProps = {
  all: readonly Series[];
  shown: readonly Series[];
  nameOf: (sId: string) => string;
};

/** Which senses are drawn: at least one. */
export function SenseChoice({ all, shown, nameOf }: SenseChoiceProps) {
  const isShown = (sId: string) => shown.some((each) => each.sId === sId);
  const toggle = (sId: string) => {
    const next = all.filter((each) => isShown(each.sId) !== (each.sId === sId));
    const names = next.map((each) => each.sId).join(',');
    if (next.length > 0) setQuery({ senses: names }, { replace: true });
  };
  return (
    <div class="sense-choice" role="group" aria-label={t('chart.senses')}>
      {all.map(({ sId }) => (
        <button
          key={sId}
          type="button"
          class="range"
          aria-pressed={isShown(sId)}
          onClick={() => toggle(sId)}
        >
          {nameOf(sId)}
        </button>
      ))}
    </div>
  );
}
