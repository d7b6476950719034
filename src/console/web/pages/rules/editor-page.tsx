import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { getPurpose } from '../../api/rules.ts';
import { accountOf } from '../../app/session.ts';
import { BackLink, Link } from '../../parts/link.tsx';
import { Answered, Empty } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { sayChanges } from '../device/changes.ts';
import { type Chosen, useDevices } from './devices-choice.tsx';
import {
  beginHistory,
  edit,
  firstOf,
  type History,
  readRule,
  redo,
  type Rule,
  undo,
  withAt,
} from './document.ts';
import { type Draft, isNew, keepDraft, readDraft } from './draft.ts';
import { isBelow } from './event-form.tsx';
import { FindingsAt, useChecked } from './findings.tsx';
import { InstallDialog } from './install-dialog.tsx';
import { JsonPanel } from './json-panel.tsx';
import { SampleDevice, useSample, useSenses } from './sample.tsx';
import { SaveDialog } from './save-dialog.tsx';
import { SelectedForm } from './selected-form.tsx';
import { States } from './states.tsx';
import { text } from './texts.ts';
import { Try } from './try.tsx';
import { Versions } from './versions.tsx';

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

function Editor({ id, stored: first, draft }: EditorProps) {
  // What comes later changes nothing here: saving says so if somebody else has saved.
  const [stored, setStored] = useState(first);
  const [history, setHistory] = useState(() => beginHistory(draft?.rule ?? first?.rule ?? noRule));
  const [tag, setTag] = useState(draft?.tag ?? first?.tag ?? '');
  const [restored, setRestored] = useState(draft !== null && first !== null ? draft.ts : null);
  const [selected, setSelected] = useState(() => firstOf(history.now));
  const [isSaving, setIsSaving] = useState(false);
  const [isInstalling, setIsInstalling] = useState(false);
  const { now: rule } = history;
  const isChanged = stored === null || JSON.stringify(stored.rule) !== JSON.stringify(rule);
  useEffect(() => keepDraft(id, isChanged ? { rule, tag } : null), [id, rule, tag, isChanged]);
  useKeys(setHistory, () => isChanged && setIsSaving(true));
  const heading = useRef<HTMLHeadingElement>(null);
  // Whoever comes by the keyboard, from a list or a dialog that is gone, begins here.
  useLayoutEffect(() => {
    if (document.activeElement === document.body) heading.current?.focus();
  }, []);
  const sample = useSample();
  const senses = useSenses(sample);
  const [chosen, setChosen] = useChosen(sample, rule);
  const { findings, purpose } = useChecked(rule, { isTried: true });
  const { purpose: before } = useChecked(stored?.rule ?? noRule, { isTried: false });
  const changes = before && purpose ? sayChanges(before, purpose, senses) : [];
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
        <h1 ref={heading} tabIndex={-1}>
          {nameNow || text('rules.unnamed')}
        </h1>
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
              disabled={isChanged || sample === ''}
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
          purpose={purpose}
          findings={findings}
          onSelect={setSelected}
          onChange={change}
        />
      </div>
      <Try
        {...{ rule, selected, senses, chosen }}
        stored={stored?.rule ?? null}
        onChoose={setChosen}
        onChange={change}
      />
      <JsonPanel rule={rule} onChange={change} />
      {stored && !isNew(id) && (
        <Versions
          uuid={id}
          tag={stored.tag}
          isChanged={isChanged}
          senses={senses}
          onRestored={() => {
            keepDraft(id, null);
            location.reload();
          }}
        />
      )}
      {isInstalling && (
        <InstallDialog uuid={id} first={chosen} onClose={() => setIsInstalling(false)} />
      )}
      {isSaving && (
        <SaveDialog
          id={id}
          rule={rule}
          tag={tag}
          changes={changes}
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

/** What was chosen last, of an account: a new rule gets another address when it is saved. */
let last: { account: string; rule: unknown; chosen: readonly Chosen[] } | null = null;

/** The devices that the rule is tried on, and installed on then; at first the one whose sensors are shown. */
function useChosen(sample: string, { puId }: Rule) {
  const { devices } = useDevices().data ?? { devices: [] };
  const account = accountOf()?.accountAuthUuid ?? '';
  const [chosen, setChosen] = useState(
    last?.account === account && last.rule === puId ? last.chosen : null,
  );
  const choose = (next: readonly Chosen[]) => {
    last = { account, rule: puId, chosen: next };
    setChosen(next);
  };
  const first = devices.find(({ uuid }) => uuid === sample) ?? { uuid: sample, name: sample };
  return [chosen ?? (sample === '' ? [] : [first]), choose] as const;
}

/** Ctrl+S; Ctrl+Z and Ctrl+Y, also in its fields, but not in the JSON, where the browser undoes what was typed. */
function useKeys(
  setHistory: (change: (before: History) => History) => void,
  save: () => void,
): void {
  const latest = useRef(save);
  latest.current = save;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { ctrlKey, metaKey, shiftKey, altKey, target } = event;
      if (!(ctrlKey || metaKey) || altKey || document.querySelector('dialog[open]')) return;
      const key = event.key.toLowerCase();
      const step = key === 'z' ? (shiftKey ? redo : undo) : key === 'y' ? redo : null;
      if (key === 's') latest.current();
      else if (step && !(target instanceof HTMLTextAreaElement)) setHistory(step);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}
