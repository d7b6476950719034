import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Purpose, Sense } from '../../api/types.ts';
import type { Finding } from '../../engine/check.ts';
import { sayDoes, sayWhen } from '../device/purposes.tsx';
import {
  addEvent,
  firstOf,
  type Members,
  pathOf,
  remove,
  type Rule,
  type Selected,
  valueAt,
  withAt,
} from './document.ts';
import { EventForm, nameOfState } from './event-form.tsx';
import { Tick } from './fields.tsx';
import { text } from './texts.ts';

type FormProps = {
  rule: Rule;
  selected: Selected | null;
  senses: ReadonlyMap<string, Sense>;
  /** The rule as the service reads it; null if it refuses it. */
  purpose: Purpose | null;
  findings: readonly Finding[];
  onSelect: (selected: Selected) => void;
  /** `key`: what is typed in one field is one step to undo. */
  onChange: (rule: Rule, key?: string) => void;
};

/** The selected event in sentences, or the selected state. */
export function SelectedForm({
  rule,
  selected,
  senses,
  purpose,
  findings,
  onSelect,
  onChange,
}: FormProps) {
  const form = useRef<HTMLElement>(null);
  const isOther = useRef(false);
  // What was added is changed next; and what is gone takes the focus with it.
  useLayoutEffect(() => {
    if (isOther.current) form.current?.querySelector('input')?.focus();
    isOther.current = false;
  }, [selected]);
  const show = (next: Rule, other: Selected) => {
    isOther.current = true;
    onChange(next);
    onSelect(other);
  };
  const path = selected && pathOf(rule, selected);
  if (!selected || !path) return <p class="panel muted">{text('rules.selectOne')}</p>;
  const { stId, evId } = selected;
  const state = rule.states.find((each) => each.stId === stId);
  const event = state?.events.find((each) => each.evId === evId);
  if (!state) return null;
  const name = `${stId}/${evId ?? ''}`;
  const [sId = ''] = senses.keys();
  return (
    <section ref={form} class="panel rule-selected" aria-label={text('rules.selected')}>
      {purpose && <Said purpose={purpose} selected={selected} senses={senses} />}
      {event ? (
        <EventForm
          key={name}
          rule={rule}
          event={event}
          path={path}
          senses={senses}
          findings={findings}
          onChange={(at, value, key) =>
            onChange(
              withAt(rule, [...path, ...at], value),
              key === undefined ? undefined : `${name}/${key}`,
            )
          }
        />
      ) : (
        <StateForm rule={rule} state={state} onChange={onChange} />
      )}
      <p class="rule-buttons">
        <button
          type="button"
          class="link"
          onClick={() => {
            const added = addEvent(rule, selected, { name: text('rules.newEvent'), sId });
            show(added.rule, added.selected);
          }}
        >
          {text('rules.addEvent', { state: nameOfState(state) })}
        </button>
        <button
          type="button"
          class="link link-danger"
          onClick={() => {
            const left = remove(rule, selected);
            show(left, event ? { stId } : (firstOf(left) ?? { stId }));
          }}
        >
          {text(event ? 'rules.removeEvent' : 'rules.removeState')}
        </button>
      </p>
    </section>
  );
}

type SaidProps = { purpose: Purpose; selected: Selected; senses: ReadonlyMap<string, Sense> };

/** All of an event in words, as the page of a device says it. */
function Said({ purpose, selected: { stId, evId }, senses }: SaidProps) {
  const state = purpose.states.find((each) => each.stId === stId);
  const event = state?.events.find((each) => each.evId === evId);
  if (!event) return null;
  return (
    <p class="rule-said">
      <strong>{sayWhen(event, senses)}</strong>
      <br />
      {sayDoes(event, stId, purpose, [purpose])}
    </p>
  );
}

function StateForm({
  rule,
  state,
  onChange,
}: Pick<FormProps, 'rule' | 'onChange'> & { state: Members & { stId: number } }) {
  const { stId } = state;
  const path = pathOf(rule, { stId }) ?? [];
  const name = valueAt(state, ['name']);
  return (
    <div class="form">
      <label class="field">
        <span>{text('rules.stateName')}</span>
        <input
          value={typeof name === 'string' ? name : ''}
          maxLength={100}
          onInput={({ currentTarget: { value } }) =>
            onChange(
              withAt(rule, [...path, 'name'], value === '' ? undefined : value),
              `${stId}/name`,
            )
          }
        />
      </label>
      <Tick
        label={text('rules.begins')}
        checked={rule['initStId'] === stId}
        onChange={(next) => next && onChange(withAt(rule, ['initStId'], stId))}
      />
      <Tick
        label={text('rules.global')}
        checked={state['isGlobal'] === true}
        onChange={(next) => onChange(withAt(rule, [...path, 'isGlobal'], next ? true : undefined))}
      />
    </div>
  );
}
