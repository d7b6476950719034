import { useEffect, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { getConfiguration, listDevices, sensesOf } from '../../api/devices.ts';
import { ApiError } from '../../api/request.ts';
import { addPurpose, getPurpose, replacePurpose } from '../../api/rules.ts';
import type { Sense } from '../../api/types.ts';
import { navigate, queryOf, setQuery } from '../../app/router.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Empty, lazyPart, Problem, say } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import type { Diagram as DiagramPart } from './diagram.tsx';
import {
  addEvent,
  addState,
  beginHistory,
  edit,
  type History,
  type Members,
  pathOf,
  readRule,
  redo,
  remove,
  type Rule,
  type Selected,
  undo,
  valueAt,
  withAt,
} from './document.ts';
import { type Draft, isNew, keepDraft, readDraft } from './draft.ts';
import { EventForm, isBelow, nameOfState } from './event-form.tsx';
import { Tick } from './fields.tsx';
import { FindingsAt, useFindings } from './findings.tsx';
import { InstallDialog } from './install-dialog.tsx';
import { JsonPanel } from './json-panel.tsx';
import { StateCard } from './states.tsx';
import { text } from './texts.ts';
import { Try } from './try.tsx';
import { Versions } from './versions.tsx';

// It brings a library that lays out graphs.
const Diagram = lazyPart<Parameters<typeof DiagramPart>[0]>(
  async () => (await import('./diagram.tsx')).Diagram,
);

/** What is stored of a rule, and its version. */
type Stored = { rule: Rule; tag: string };

/** Writes a rule, without JSON or with it. `uuid`: of a stored purpose, or of a draft: `new-1`. */
export function EditorPage({ uuid }: { uuid: string }) {
  const draft = readDraft(uuid);
  return (
    <>
      <BackLink to="rules">{text('rules.title')}</BackLink>
      {!isNew(uuid) ? (
        <StoredRule uuid={uuid} draft={draft} />
      ) : draft ? (
        <Editor id={uuid} stored={null} draft={draft} />
      ) : (
        <Empty icon="list" title={text('rules.noDraft')}>
          <Link to="rules" class="button">
            {text('rules.toRules')}
          </Link>
        </Empty>
      )}
    </>
  );
}

function StoredRule({ uuid, draft }: { uuid: string; draft: Draft | null }) {
  const query = useQuery(`rule/${uuid}`, (signal) => getPurpose(uuid, signal));
  // The editor begins with what is stored now, not with what an earlier visit read.
  const [earlier] = useState(query.data);
  const data = query.data === earlier ? undefined : query.data;
  return (
    <Answered query={{ ...query, data }} lines={8}>
      {({ body, tag }) => {
        const read = readRule(body);
        // What is stored was checked.
        return 'rule' in read ? (
          <Editor id={uuid} stored={{ rule: read.rule, tag }} draft={draft} />
        ) : null;
      }}
    </Answered>
  );
}

type EditorProps = { id: string; stored: Stored | null; draft: Draft | null };

const firstOf = ({ states }: Rule): Selected | null => {
  const [state] = states;
  const [event] = state?.events ?? [];
  return state ? { stId: state.stId, ...(event ? { evId: event.evId } : {}) } : null;
};

function Editor({ id, stored: first, draft }: EditorProps) {
  // What comes later changes nothing here: saving says so if somebody else has saved.
  const [stored, setStored] = useState(first);
  const [history, setHistory] = useState(() => beginHistory(draft?.rule ?? first?.rule ?? noRule));
  const [tag, setTag] = useState(draft?.tag ?? first?.tag ?? '');
  const [restored, setRestored] = useState(draft !== null && first !== null ? draft.ts : null);
  const [selected, setSelected] = useState(() => firstOf(history.now));
  const [isSaving, setIsSaving] = useState(false);
  const [isInstalling, setIsInstalling] = useState(false);
  const { data: devices = [] } = useDevices();
  const { now: rule } = history;
  const isChanged = stored === null || JSON.stringify(stored.rule) !== JSON.stringify(rule);
  useEffect(() => keepDraft(id, isChanged ? { rule, tag } : null), [id, rule, tag, isChanged]);
  useUndoKeys(setHistory);
  const sample = useSample();
  const senses = useSenses(sample);
  const findings = useFindings(rule) ?? [];
  const change = (next: Rule, key: string | null = null) =>
    setHistory((before) => edit(before, next, key));
  const discard = () => {
    if (!stored) return;
    setHistory((before) => edit(before, stored.rule));
    setTag(stored.tag);
    setRestored(null);
  };
  const [nameNow = ''] = [rule['name']].filter((name) => typeof name === 'string');
  return (
    <>
      <div class="head">
        <h1>{nameNow || text('rules.unnamed')}</h1>
        <div class="rule-tools">
          <button
            type="button"
            class="button"
            disabled={history.past.length === 0}
            onClick={() => setHistory(undo)}
          >
            {text('rules.undo')}
          </button>
          <button
            type="button"
            class="button"
            disabled={history.future.length === 0}
            onClick={() => setHistory(redo)}
          >
            {text('rules.redo')}
          </button>
          <button
            type="button"
            class="button button-main"
            disabled={!isChanged}
            onClick={() => setIsSaving(true)}
          >
            {text(isChanged ? 'rules.save' : 'rules.saved')}
          </button>
          {stored && (
            <button
              type="button"
              class="button"
              disabled={isChanged || devices.length === 0}
              onClick={() => setIsInstalling(true)}
            >
              {text('rules.install')}
            </button>
          )}
        </div>
      </div>
      {restored !== null && isChanged && (
        <p class="notice rule-restored" role="status">
          <span>{text('rules.restored', { time: formatTime(restored) })}</span>{' '}
          <button type="button" class="link" onClick={discard}>
            {text('rules.discard')}
          </button>
        </p>
      )}
      <section class="panel rule-about" aria-label={text('rules.about')}>
        <label class="field">
          <span>{text('rules.name')}</span>
          <input
            value={nameNow}
            maxLength={100}
            onInput={({ currentTarget: { value } }) =>
              change(withAt(rule, ['name'], value === '' ? undefined : value), 'name')
            }
          />
        </label>
        <SampleDevice />
      </section>
      <FindingsAt
        of={findings.filter(({ path }) => !isBelow(path, ['states']) || path.length < 4)}
      />
      <div class="rule-panes">
        <States
          rule={rule}
          selected={selected}
          findings={findings}
          onSelect={setSelected}
          onChange={change}
        />
        <SelectedForm
          rule={rule}
          selected={selected}
          senses={senses}
          findings={findings}
          onSelect={setSelected}
          onChange={change}
        />
      </div>
      <Try
        key={sample}
        {...{ rule, selected, senses }}
        uuid={sample}
        stored={stored?.rule ?? null}
        onChange={change}
      />
      <JsonPanel rule={rule} onChange={change} />
      {stored && !isNew(id) && (
        <Versions
          uuid={id}
          tag={stored.tag}
          isChanged={isChanged}
          onRestored={() => {
            keepDraft(id, null);
            location.reload();
          }}
        />
      )}
      {isInstalling && (
        <InstallDialog
          uuid={id}
          devices={devices}
          first={sample}
          onClose={() => setIsInstalling(false)}
        />
      )}
      {isSaving && (
        <SaveDialog
          id={id}
          rule={rule}
          tag={tag}
          onClose={() => setIsSaving(false)}
          onSaved={(savedTag) => {
            setStored({ rule, tag: savedTag });
            setTag(savedTag);
            setRestored(null);
            setIsSaving(false);
            reload('rule-versions/');
          }}
        />
      )}
    </>
  );
}

const noRule: Rule = { states: [] };

/** Ctrl+Z and Ctrl+Y, also in its fields; not in the JSON, where the browser undoes what was typed. */
function useUndoKeys(setHistory: (change: (before: History) => History) => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { ctrlKey, metaKey, shiftKey, altKey, target } = event;
      if (!(ctrlKey || metaKey) || altKey || target instanceof HTMLTextAreaElement) return;
      if (document.querySelector('dialog[open]')) return;
      const key = event.key.toLowerCase();
      const step = key === 'z' ? (shiftKey ? redo : undo) : key === 'y' ? redo : null;
      if (!step) return;
      event.preventDefault();
      setHistory(step);
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

/** The sensors that the rule is written for: those of the device that the URL names, or of the first one. */
function useSenses(uuid: string): ReadonlyMap<string, Sense> {
  const { data } = useQuery(`rule-senses/${uuid}`, async (signal) =>
    uuid === '' ? new Map<string, Sense>() : sensesOf(await getConfiguration(uuid, signal)),
  );
  return data ?? new Map<string, Sense>();
}

const useDevices = () =>
  useQuery('rule-devices', async (signal) => (await listDevices({}, signal)).body.devices);

function useSample(): string {
  const asked = queryOf('device');
  const { data = [] } = useDevices();
  return asked === '' ? (data[0]?.uuid ?? '') : asked;
}

/** Whose sensors, units and values the page shows; the rule itself belongs to no device. */
function SampleDevice() {
  const { data = [] } = useDevices();
  const uuid = useSample();
  if (data.length === 0) return null;
  return (
    <label class="field">
      <span>{text('rules.sample')}</span>
      <select
        value={uuid}
        onChange={({ currentTarget }) =>
          setQuery({ device: currentTarget.value }, { replace: true })
        }
      >
        {data.every((device) => device.uuid !== uuid) && <option value={uuid}>{uuid}</option>}
        {data.map((device) => (
          <option key={device.uuid} value={device.uuid}>
            {device.name?.trim() || t('fleet.unnamed')}
          </option>
        ))}
      </select>
    </label>
  );
}

type PartProps = {
  rule: Rule;
  selected: Selected | null;
  findings: Parameters<typeof FindingsAt>[0]['of'];
  onSelect: (selected: Selected) => void;
  onChange: (rule: Rule, key?: string) => void;
};

function States({ rule, selected, findings, onSelect, onChange }: PartProps) {
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

function SelectedForm({
  rule,
  selected,
  senses,
  findings,
  onSelect,
  onChange,
}: PartProps & { senses: ReadonlyMap<string, Sense> }) {
  const path = selected && pathOf(rule, selected);
  if (!selected || !path) return <p class="panel muted">{text('rules.selectOne')}</p>;
  const { stId, evId } = selected;
  const state = rule.states.find((each) => each.stId === stId);
  const event = state?.events.find((each) => each.evId === evId);
  if (!state) return null;
  const name = `${stId}/${evId ?? ''}`;
  const [sId = ''] = senses.keys();
  return (
    <section class="panel rule-selected" aria-label={text('rules.selected')}>
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
            onChange(added.rule);
            onSelect(added.selected);
          }}
        >
          {text('rules.addEvent', { state: nameOfState(state) })}
        </button>
        <button
          type="button"
          class="link link-danger"
          onClick={() => {
            onChange(remove(rule, selected));
            onSelect(event ? { stId } : (firstOf(remove(rule, selected)) ?? { stId }));
          }}
        >
          {text(event ? 'rules.removeEvent' : 'rules.removeState')}
        </button>
      </p>
    </section>
  );
}

function StateForm({
  rule,
  state,
  onChange,
}: Pick<PartProps, 'rule' | 'onChange'> & { state: Members & { stId: number } }) {
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

type SaveProps = {
  id: string;
  rule: Rule;
  tag: string;
  onClose: () => void;
  onSaved: (tag: string) => void;
};

/** Saves a rule, with the reason; says so if somebody else has changed it since. */
function SaveDialog({ id, rule, tag, onClose, onSaved }: SaveProps) {
  const [reason, setReason] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isBehind = error instanceof ApiError && error.status === 412;
  const save = async (ifMatch: string | undefined) => {
    setBusy(true);
    setError(null);
    try {
      if (isNew(id)) {
        const uuid = await addPurpose(rule, reason.trim());
        keepDraft(id, null);
        navigate(`rules/${uuid}${location.search}`, { replace: true });
      } else onSaved(await replacePurpose(id, rule, { tag: ifMatch, reason: reason.trim() }));
      say(text('rules.isSaved'));
    } catch (thrown) {
      setError(thrown);
      setBusy(false);
    }
  };
  return (
    <Dialog title={text('rules.saveTitle')} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy) void save(isBehind ? undefined : tag || undefined);
        }}
      >
        <label class="field">
          <span>{text('rules.reason')}</span>
          <input
            name="reason"
            value={reason}
            maxLength={500}
            placeholder={text('rules.reasonHint')}
            onInput={({ currentTarget }) => setReason(currentTarget.value)}
          />
        </label>
        <p class="fine">{text('rules.saveHint')}</p>
        {isBehind ? <p class="notice">{text('rules.behind')}</p> : <Problem error={error} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onClose}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main" disabled={isBusy}>
            {text(isBehind ? 'rules.overwrite' : 'rules.save')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
