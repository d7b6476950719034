import { count, t } from '../../../text/t.ts';
import { selection } from '../selection.ts';
import { describeFilter } from '../describe-filter.ts';

const named = 5;

/** Which devices it is about, in words: some by name, or what they have in common. */
export function Affected() {
  const { value } = selection;
  if (value.kind === 'all') return <p class="fine">{describeFilter(value.filter)}</p>;
  const names = [...value.names.values()].map((name) => name || t('fleet.unnamed'));
  const more = names.length - named;
  return (
    <p class="fine affected">
      {names.slice(0, named).join(', ')}
      {more > 0 && ` ${count('fleet.more', more)}`}
    </p>
  );
}
