import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import {
  getConfiguration,
  listDevices,
  listProfiles,
  listPurposes,
  sensesOf,
} from '../../api/devices.ts';
import type { ListedProfile } from '../../api/types.ts';
import { listLatest } from '../../api/measurements.ts';
import { deletePurpose, getPurpose } from '../../api/rules.ts';
import { navigate, queryOf } from '../../app/router.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Empty, say } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { Installed } from '../profiles/profiles-page.tsx';
import { type Draft, isNew, keepDraft, listDrafts, startDraft } from './draft.ts';
import { freeNumber } from './document.ts';
import { InstalledOn } from './installed-on.tsx';
import { ruleOf, type TemplateName, templateNames } from './templates.ts';
import { text } from './texts.ts';

/** The rules of the account: stored ones, drafts, templates to begin with, and what is installed where. */
export function RulesPage() {
  const query = useQuery('purposes', listPurposes);
  const [drafts, setDrafts] = useState(listDrafts);
  const { data: installed } = useQuery('rules-installed', (signal) => listProfiles('', signal));
  // Who has none looks for a new one first.
  const isFirst = query.data?.length === 0 && drafts.size === 0;
  return (
    <>
      <div class="head">
        <h1>{text('rules.title')}</h1>
      </div>
      <p class="rules-hint">{text('rules.hint')}</p>
      {isFirst && <Templates />}
      <section class="panel panel-flush" aria-label={text('rules.yours')} hidden={isFirst}>
        <Answered query={query} lines={4}>
          {(purposes) => {
            const started = [...drafts].filter(([id]) => isNew(id));
            return purposes.length + started.length === 0 ? (
              <Empty icon="list" title={text('rules.none')} hint={text('rules.noneHint')} />
            ) : (
              <ul class="rule-list">
                {started.map(([id, draft]) => (
                  <DraftRow key={id} id={id} draft={draft} onGone={() => setDrafts(listDrafts())} />
                ))}
                {purposes.map(({ uuid, name }) => (
                  <RuleRow
                    key={uuid}
                    uuid={uuid}
                    name={name}
                    draft={drafts.get(uuid)}
                    profiles={installed?.body.profiles ?? null}
                  />
                ))}
              </ul>
            );
          }}
        </Answered>
      </section>
      {!isFirst && <Templates />}
      <section aria-labelledby="installed">
        <h2 id="installed">{text('rules.installed')}</h2>
        <Installed
          none={{ title: text('rules.noneInstalled'), hint: text('rules.noneInstalledHint') }}
        />
      </section>
    </>
  );
}

type RowProps = {
  uuid: string;
  name: string;
  draft: Draft | undefined;
  /** What is installed; null: not known yet. */
  profiles: readonly ListedProfile[] | null;
};

function RuleRow({ uuid, name, draft, profiles }: RowProps) {
  const [isAsked, setIsAsked] = useState(false);
  const shown = name || text('rules.unnamed');
  return (
    <li class="rule-row">
      <Link to={`rules/${uuid}`} class="rule-link">
        {shown}
      </Link>
      {draft && <span class="tag">{text('rules.changedAt', { time: formatTime(draft.ts) })}</span>}
      <button
        type="button"
        class="button button-icon"
        aria-label={text('rules.delete', { name: shown })}
        onClick={() => setIsAsked(true)}
      >
        <Icon name="bin" />
      </button>
      {profiles && <InstalledOn uuid={uuid} profiles={profiles} />}
      {isAsked && (
        <Confirm
          title={text('rules.deleteTitle', { name: shown })}
          action={text('rules.deleteDo')}
          onCancel={() => setIsAsked(false)}
          onConfirm={async () => {
            await deletePurpose(uuid);
            keepDraft(uuid, null);
            setIsAsked(false);
            reload('purposes');
          }}
        >
          <p>{text('rules.deleteHint')}</p>
        </Confirm>
      )}
    </li>
  );
}

function DraftRow({ id, draft, onGone }: { id: string; draft: Draft; onGone: () => void }) {
  const name = draft.rule['name'];
  const shown = typeof name === 'string' && name !== '' ? name : text('rules.unnamed');
  const discard = () => {
    keepDraft(id, null);
    onGone();
    say(text('rules.discarded'), {
      forMs: 10_000,
      run: async () => {
        keepDraft(id, draft);
        onGone();
      },
    });
  };
  return (
    <li class="rule-row">
      <Link to={`rules/${id}`} class="rule-link">
        {shown}
      </Link>
      <span class="tag">{text('rules.draftOf', { time: formatTime(draft.ts) })}</span>
      <button
        type="button"
        class="button button-icon"
        aria-label={text('rules.discardDraft', { name: shown })}
        onClick={discard}
      >
        <Icon name="bin" />
      </button>
    </li>
  );
}

/** More are not read for a number that is free. */
const mostRead = 100;

/**
 * A number that no other rule has: what is recorded of one is known by it. Looks at drafts, stored rules, and what is
 * installed.
 */
async function freePuId(): Promise<number> {
  const [stored, installed] = await Promise.all([listPurposes(), listProfiles('')]);
  const read = await Promise.all(stored.slice(0, mostRead).map(({ uuid }) => getPurpose(uuid)));
  return freeNumber([
    ...read.map(({ body }) => body.puId),
    ...installed.body.profiles.flatMap(({ purposes }) => purposes.map(({ puId }) => puId)),
    ...[...listDrafts().values()].map(({ rule }) => Number(rule['puId'])),
  ]);
}

function Templates() {
  const asked = queryOf('device');
  const [error, setError] = useState<unknown>(null);
  const begin = async (name: TemplateName) => {
    try {
      const uuid = asked || ((await listDevices({})).body.devices[0]?.uuid ?? '');
      const senses = uuid === '' ? [] : [...sensesOf(await getConfiguration(uuid)).values()];
      const latest = uuid === '' || name !== 'area' ? [] : await listLatest([uuid]);
      const place = latest.find(({ val }) => typeof val === 'object')?.val;
      const near = typeof place === 'object' ? place : undefined;
      const query = asked === '' ? '' : `?device=${asked}`;
      navigate(`rules/${startDraft(ruleOf(name, await freePuId(), senses, near))}${query}`);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <section aria-labelledby="templates">
      <h2 id="templates">{text('rules.templates')}</h2>
      {error !== null && <p class="field-problem">{t('problem.unreachable')}</p>}
      <ul class="rule-templates">
        {templateNames.map((name) => (
          <li key={name}>
            <button type="button" class="template" onClick={() => void begin(name)}>
              <strong>{text(`template.${name}`)}</strong>
              <span class="fine">{text(`template.${name}Hint`)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
