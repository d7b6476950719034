import { Icon } from '../../parts/icon.tsx';
import { t } from '../../text/t.ts';
import type { Finding } from '../../engine/check.ts';
import { pathOf, type Rule, type Selected, type State, valueAt } from './document.ts';
import { isBelow, nameOfEvent, nameOfState } from './event-form.tsx';
import { text } from './texts.ts';

type CardProps = {
  rule: Rule;
  state: State;
  selected: Selected | null;
  findings: readonly Finding[];
  onSelect: (selected: Selected) => void;
};

/** A state with its events; each of them can be selected. */
export function StateCard({ rule, state, selected, findings, onSelect }: CardProps) {
  const { stId, events } = state;
  const isGlobal = state['isGlobal'] === true;
  const isSelected = selected?.stId === stId && selected.evId === undefined;
  return (
    <>
      <button
        type="button"
        class="state-name"
        aria-pressed={isSelected}
        onClick={() => onSelect({ stId })}
      >
        <span>{nameOfState(state)}</span>
        {rule['initStId'] === stId && rule.states.length > 1 && (
          <span class="tag">{t('profile.first')}</span>
        )}
        {isGlobal && <span class="tag">{t('profile.everyState')}</span>}
      </button>
      {events.map((event) => {
        const { evId } = event;
        const at = pathOf(rule, { stId, evId }) ?? [];
        const isFound = findings.some(({ path }) => isBelow(path, at));
        const target = valueAt(event, ['actions', 'engine', 'gotoStId']);
        const to = rule.states.find((each) => each.stId === target);
        return (
          <button
            key={evId}
            type="button"
            class="state-event"
            aria-pressed={selected?.stId === stId && selected.evId === evId}
            onClick={() => onSelect({ stId, evId })}
          >
            {isFound && <Icon name="warn" />}
            <span>{nameOfEvent(event)}</span>
            {to && <span class="muted">→ {nameOfState(to)}</span>}
            {isFound && <span class="hidden">{text('rules.hasFindings')}</span>}
          </button>
        );
      })}
      {events.length === 0 && <p class="fine">{t('profile.noEvents')}</p>}
    </>
  );
}
