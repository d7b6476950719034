import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Sense } from '../../api/types.ts';
import { Link } from '../../parts/link.tsx';
import { t } from '../../text/t.ts';
import { CauseRow } from './cause-row.tsx';
import {
  groupsOf,
  type Members,
  membersOf,
  newCause,
  placeOfCause,
  type Path,
  type Rule,
  type RuleEvent,
  valueAt,
  withAt,
  withGroups,
} from './document.ts';
import { Choice, DurationInput, Tick } from './fields.tsx';
import { FindingsAt } from './findings.tsx';
import type { Finding } from '../../engine/check.ts';
import { text } from './texts.ts';
import { Icon } from '../../parts/icon.tsx';

type Change = (path: Path, value: unknown, key?: string) => void;

type EventFormProps = {
  rule: Rule;
  event: RuleEvent;
  /** Where the event is. */
  path: Path;
  senses: ReadonlyMap<string, Sense>;
  findings: readonly Finding[];
  /** Changes something in the event. */
  onChange: Change;
};

/** An event in sentences: when it fires, and what is done then. */
export function EventForm({ rule, event, path, senses, findings, onChange }: EventFormProps) {
  const groups = groupsOf(event);
  const at = (...more: Path) => findings.filter((found) => isBelow(found.path, [...path, ...more]));
  const name = typeof event['name'] === 'string' ? event['name'] : '';
  const others = besideForm(event);
  return (
    <div class="form event-form">
      <label class="field">
        <span>{text('rules.eventName')}</span>
        <input
          value={name}
          maxLength={100}
          onInput={({ currentTarget: { value } }) =>
            onChange(['name'], value === '' ? undefined : value, 'name')
          }
        />
      </label>
      <FindingsAt of={at('name')} />
      <Conditions {...{ event, groups, senses, onChange }} findingsAt={at} />
      <ThenForm rule={rule} event={event} onChange={onChange} />
      <FindingsAt of={at('actions')} />
      {others.length > 0 && (
        <p class="fine">{text('rules.alsoSays', { members: others.join(', ') })}</p>
      )}
      <FindingsAt
        of={findings.filter(
          (found) =>
            isBelow(found.path, path) &&
            !['name', 'causes', 'anyOf', 'actions'].includes(String(found.path[path.length])),
        )}
      />
    </div>
  );
}

type ConditionsProps = Pick<EventFormProps, 'event' | 'senses' | 'onChange'> & {
  groups: readonly (readonly Members[])[];
  findingsAt: (...at: Path) => readonly Finding[];
};

/** When it fires: sentences that must all hold; or those of another group. */
function Conditions({ event, groups, senses, findingsAt, onChange }: ConditionsProps) {
  const all = useRef<HTMLFieldSetElement>(null);
  const number = groups.flat().length;
  const before = useRef(number);
  const changed = useRef(0);
  // To a condition that was added; from one that is gone to where another one is added.
  useLayoutEffect(() => {
    const group = all.current?.querySelectorAll('.rule-group')[changed.current];
    const rows = [...(group?.querySelectorAll('.rule-cause') ?? [])];
    if (number > before.current) rows.at(-1)?.querySelector('select')?.focus();
    else if (number < before.current)
      (group ?? all.current)?.querySelector<HTMLElement>(':scope > p > .link')?.focus();
    before.current = number;
  }, [number]);
  const [first = ''] = senses.keys();
  const set = (next: readonly (readonly Members[])[], group: number) => {
    changed.current = group;
    onChange([], withGroups(event, next));
  };
  const setGroup = (group: number, causes: readonly Members[]) =>
    set(groups.with(group, causes), group);
  return (
    <fieldset ref={all} class="sentences">
      <legend>{text('rules.whenTitle')}</legend>
      {groups.map((causes, g) => (
        <div
          key={g}
          class="sentences rule-group"
          {...(groups.length > 1
            ? { role: 'group', 'aria-label': text('rules.group', { number: g + 1 }) }
            : {})}
        >
          {g > 0 && <p class="sentence-word">{text('rules.or')}</p>}
          {causes.map((cause, place) => {
            const path = placeOfCause(event, g, place);
            return (
              <div key={place}>
                <CauseRow
                  cause={cause}
                  isFirst={place === 0}
                  senses={senses}
                  onChange={(next, key) =>
                    onChange(path, next, key === undefined ? undefined : `${path.join('/')}/${key}`)
                  }
                  onRemove={() => setGroup(g, causes.toSpliced(place, 1))}
                />
                <FindingsAt of={findingsAt(...path)} />
              </div>
            );
          })}
          {causes.length === 0 && <p class="fine">{text('rules.noCauses')}</p>}
          <p>
            <button
              type="button"
              class="link"
              onClick={() => setGroup(g, [...causes, newCause(first)])}
            >
              <Icon name="plus" />
              {text(causes.length === 0 ? 'rules.addFirstCause' : 'rules.addCause')}
            </button>
          </p>
        </div>
      ))}
      {number > 0 && (
        <p>
          <button
            type="button"
            class="link"
            onClick={() => set([...groups, [newCause(first)]], groups.length)}
          >
            <Icon name="plus" />
            {text('rules.addGroup')}
          </button>
        </p>
      )}
    </fieldset>
  );
}

export const isBelow = (path: Path, above: Path): boolean =>
  above.every((step, place) => step === path[place]);

const known = ['evId', 'name', 'eventLog', 'actions', 'causes', 'anyOf'];
const knownActions = [
  'alarm',
  'severity',
  'keepMs',
  'repeatMs',
  'cloud',
  'sms',
  'display',
  'engine',
];

/** What an event says besides its form: names of members. */
const besideForm = (event: RuleEvent): string[] => [
  ...Object.keys(event).filter((name) => !known.includes(name)),
  ...Object.keys(membersOf(event['actions'])).filter((name) => !knownActions.includes(name)),
];

const severities = ['info', 'warning', 'critical'] as const;
type Severity = (typeof severities)[number];

function ThenForm({ rule, event, onChange }: Pick<EventFormProps, 'rule' | 'event' | 'onChange'>) {
  const actions = membersOf(event['actions']);
  const { alarm, severity = 'warning', keepMs, repeatMs } = actions;
  const tells = valueAt(actions, ['cloud', 'sendPush']) === true;
  const isRecorded =
    event['eventLog'] === true ||
    valueAt(actions, ['cloud', 'sendEvent']) === true ||
    valueAt(actions, ['cloud', 'sendLog']) === true;
  const sms = actions['sms'] === undefined ? null : membersOf(actions['sms']);
  const shown = valueAt(actions, ['display', 'showText']);
  const set = (path: Path, value: unknown, key?: string) =>
    onChange(['actions'], tidied(withAt(actions, path, value)), key);
  const opens = alarm === true ? 'yes' : alarm === false ? 'no' : 'auto';
  return (
    <fieldset class="sentences">
      <legend>{text('rules.thenTitle')}</legend>
      <div class="sentence">
        <Choice
          label={text('rules.alarm')}
          value={opens}
          options={(['yes', 'no', 'auto'] as const).map((each) => [
            each,
            text(`rules.alarm.${each}`),
          ])}
          onChange={(next) => set(['alarm'], next === 'auto' ? undefined : next === 'yes')}
        />
        {opens !== 'no' && (
          <Choice
            label={text('rules.severity')}
            value={severity as Severity}
            options={severities.map((each) => [each, t(`severity.${each}`)])}
            onChange={(next) => set(['severity'], next === 'warning' ? undefined : next)}
          />
        )}
      </div>
      {opens !== 'no' && (
        <Timed
          label={text('rules.keeps')}
          ms={keepMs}
          first={300_000}
          onChange={(ms) => set(['keepMs'], ms, 'keepMs')}
        />
      )}
      <div class="sentence">
        <Tick
          label={text('rules.tells')}
          checked={tells}
          onChange={(next) => set(['cloud', 'sendPush'], next ? true : undefined)}
        />
        {tells && (
          <Link to="account/contacts" class="link">
            {text('rules.contacts')}
          </Link>
        )}
      </div>
      {(tells || sms !== null) && opens !== 'no' && (
        <Timed
          label={text('rules.repeats')}
          ms={repeatMs}
          first={3_600_000}
          onChange={(ms) => set(['repeatMs'], ms, 'repeatMs')}
        />
      )}
      <Tick
        label={text('rules.sms')}
        checked={sms !== null}
        onChange={(next) => set(['sms'], next ? { text: '', phoneNumber: [] } : undefined)}
      />
      {sms !== null && (
        <Sms
          sms={sms}
          onChange={(path, value) => set(['sms', ...path], value, `sms/${path.join()}`)}
        />
      )}
      <Tick
        label={text('rules.shows')}
        checked={shown !== undefined}
        onChange={(next) => set(['display', 'showText'], next ? '' : undefined)}
      />
      {shown !== undefined && (
        <label class="field sentence-inside">
          <span>{text('rules.showText')}</span>
          <input
            value={asText(shown)}
            onInput={({ currentTarget }) =>
              set(['display', 'showText'], currentTarget.value, 'showText')
            }
          />
        </label>
      )}
      <Moves rule={rule} actions={actions} onChange={set} />
      <Tick
        label={text('rules.records')}
        checked={isRecorded}
        onChange={(next) => onRecord(event, next, onChange)}
      />
    </fieldset>
  );
}

/** One of three members records it; all three go. */
function onRecord(event: RuleEvent, isRecorded: boolean, onChange: Change): void {
  if (isRecorded) return onChange(['eventLog'], true);
  const { eventLog: _, ...others } = event;
  const { sendEvent: _e, sendLog: _l, ...cloud } = membersOf(valueAt(event, ['actions', 'cloud']));
  onChange([], withAt(others, ['actions'], tidied({ ...membersOf(event['actions']), cloud })));
}

/** Without groups of actions that are empty. */
const tidied = (actions: Members): Members =>
  Object.fromEntries(
    Object.entries(actions).filter(
      ([name, members]) =>
        !['cloud', 'display', 'engine'].includes(name) ||
        Object.keys(membersOf(members)).length > 0,
    ),
  );

function Timed({
  label,
  ms,
  first,
  onChange,
}: {
  label: string;
  ms: unknown;
  first: number;
  onChange: (ms: number | undefined) => void;
}) {
  return (
    <div class="sentence sentence-inside">
      <Tick
        label={label}
        checked={typeof ms === 'number'}
        onChange={(next) => onChange(next ? first : undefined)}
      />
      {typeof ms === 'number' && <DurationInput label={label} ms={ms} onChange={onChange} />}
    </div>
  );
}

function Sms({ sms, onChange }: { sms: Members; onChange: (path: Path, value: unknown) => void }) {
  const numbers = Array.isArray(sms['phoneNumber']) ? sms['phoneNumber'].join(', ') : '';
  // A comma that was just typed stays, until something else changes the numbers.
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  return (
    <div class="sentence-inside form">
      <label class="field">
        <span>{text('rules.smsNumbers')}</span>
        <input
          value={typed?.of === numbers ? typed.text : numbers}
          inputMode="tel"
          placeholder="+49 171 2345678"
          onInput={({ currentTarget: { value } }) => {
            const parts = value.split(/[,;]/).map((each) => each.trim());
            const next = parts.filter((each) => each !== '');
            setTyped({ text: value, of: next.join(', ') });
            onChange(['phoneNumber'], next);
          }}
        />
      </label>
      <label class="field">
        <span>{text('rules.smsText')}</span>
        <input
          value={typeof sms['text'] === 'string' ? sms['text'] : ''}
          onInput={({ currentTarget }) => onChange(['text'], currentTarget.value)}
        />
      </label>
    </div>
  );
}

/** Which state the device goes to; of another rule only as it is. */
function Moves({
  rule,
  actions,
  onChange,
}: {
  rule: Rule;
  actions: Members;
  onChange: (path: Path, value: unknown) => void;
}) {
  const { gotoStId, gotoPuId } = membersOf(actions['engine']);
  if (gotoPuId !== undefined && gotoPuId !== rule['puId'])
    return <p class="fine">{text('rules.movesElsewhere', { puId: asText(gotoPuId) })}</p>;
  const targets = rule.states.filter((state) => state['isGlobal'] !== true);
  const options = targets.map((state) => [String(state.stId), nameOfState(state)] as const);
  const value = gotoStId === undefined ? '' : asText(gotoStId);
  const isGone = value !== '' && options.every(([each]) => each !== value);
  return (
    <div class="sentence">
      <Tick
        label={text('rules.moves')}
        checked={gotoStId !== undefined}
        onChange={(next) => onChange(['engine', 'gotoStId'], next ? targets[0]?.stId : undefined)}
      />
      {gotoStId !== undefined && (
        <Choice
          label={text('rules.moves')}
          value={value}
          options={[
            ...options,
            ...(isGone ? [[value, t('chart.state', { id: value })] as const] : []),
          ]}
          onChange={(next) => onChange(['engine', 'gotoStId'], Number(next))}
        />
      )}
    </div>
  );
}

/** JSON may have anything there. */
const asText = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

export const nameOfState = (state: Members): string =>
  typeof state['name'] === 'string' && state['name'] !== ''
    ? state['name']
    : t('chart.state', { id: asText(state['stId']) });

export const nameOfEvent = (event: Members): string =>
  typeof event['name'] === 'string' && event['name'] !== ''
    ? event['name']
    : t('event.unknown', { id: asText(event['evId']) });
