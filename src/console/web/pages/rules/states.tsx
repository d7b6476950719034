import { Icon } from '../../parts/icon.tsx';
import { lazyPart } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import type { Finding } from '../../engine/check.ts';
import type { Diagram as DiagramPart } from './diagram.tsx';
import { addState, pathOf, type Rule, type Selected, type State, valueAt } from './document.ts';
import { isBelow, nameOfEvent, nameOfState } from './event-form.tsx';
import { text } from './texts.ts';

// It brings a library that lays out graphs.
const Diagram = lazyPart<Parameters<typeof DiagramPart>[0]>(
  async () => (await import('./diagram.tsx')).Diagram,
);

type StatesProps = Omit<CardProps, 'state'> & { onChange: (rule: Rule) => void };

/** The states of a rule with their events, to select one of them; of several states their diagram, too. */
export function States({ rule, selected, findings, onSelect, onChange }: StatesProps) {
  const add = (added: { rule: Rule; selected: Selected }) => {
    onChange(added.rule);
    onSelect(added.selected);
  };
  return (
    <section class="panel rule-states" aria-label={text('rules.states')}>
      {rule.states.length > 1 && <Diagram {...{ rule, selected, onSelect }} />}
      <ul class="state-list">
        {rule.states.map((state) => (
          <li key={state.stId} class="state-card">
            <StateCard
              rule={rule}
              state={state}
              selected={selected}
              findings={findings}
              onSelect={onSelect}
            />
          </li>
        ))}
      </ul>
      <p>
        <button
          type="button"
          class="link"
          onClick={() =>
            add(addState(rule, text('rules.newState', { id: rule.states.length + 1 })))
          }
        >
          {text('rules.addState')}
        </button>
      </p>
    </section>
  );
}

type CardProps = {
  rule: Rule;
  state: State;
  selected: Selected | null;
  findings: readonly Finding[];
  onSelect: (selected: Selected) => void;
};

/** A state with its events; each of them can be selected. */
function StateCard({ rule, state, selected, findings, onSelect }: CardProps) {
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
