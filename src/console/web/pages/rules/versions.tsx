import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { getVersion, listVersions, restoreVersion } from '../../api/rules.ts';
import type { Sense } from '../../api/types.ts';
import { Confirm } from '../../parts/dialog.tsx';
import { Answered, Problem, say } from '../../parts/panel.tsx';
import { formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';
import { sayChanges } from '../device/changes.ts';
import { text } from './texts.ts';

type VersionsProps = {
  uuid: string;
  /** The version that is known to be the newest. */
  tag: string;
  /** There are changes that are not saved. */
  isChanged: boolean;
  senses: ReadonlyMap<string, Sense>;
  onRestored: () => void;
};

/** Versions whose changes are said; those of earlier ones are asked for. */
const firstShown = 10;

/** What the rule was before: when, by whom, why; an earlier version can be made the newest one. */
export function Versions(props: VersionsProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details class="more" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{text('versions.title')}</summary>
      {isOpen && <List {...props} />}
    </details>
  );
}

function List({ uuid, tag, isChanged, senses, onRestored }: VersionsProps) {
  const query = useQuery(`rule-versions/${uuid}`, (signal) => listVersions(uuid, signal));
  const [error, setError] = useState<unknown>(null);
  const [shown, setShown] = useState(firstShown);
  const [asked, setAsked] = useState<number | null>(null);
  const restore = async (version: number) => {
    await restoreVersion(uuid, version, tag);
    reload('rule-versions/');
    say(text('versions.restored', { version }));
    onRestored();
  };
  return (
    <Answered query={query}>
      {(versions) => (
        <ul class="try-list">
          {versions.slice(0, shown).map(({ version, timestamp, by, reason }, place) => (
            <li key={version} class="rule-row">
              <span class="rule-link">
                {text('versions.one', { version, time: formatTime(timestamp) })}
              </span>
              <span class="muted">
                {t(`profile.by.${by}`)} {reason ? t('profile.reason', { reason }) : ''}
              </span>
              {place > 0 && (
                <button
                  type="button"
                  class="button"
                  onClick={() =>
                    isChanged ? setAsked(version) : void restore(version).catch(setError)
                  }
                >
                  {text('versions.restore', { version })}
                </button>
              )}
              <Changes {...{ uuid, version, senses }} />
            </li>
          ))}
          {versions.length > shown && (
            <li>
              <button
                type="button"
                class="link"
                onClick={() => setShown((before) => before + firstShown)}
              >
                {text('versions.earlier')}
              </button>
            </li>
          )}
          {asked !== null && (
            <Confirm
              title={text('versions.askTitle', { version: asked })}
              action={text('versions.restore', { version: asked })}
              onCancel={() => setAsked(null)}
              onConfirm={() => restore(asked)}
            >
              <p>{text('versions.ask')}</p>
            </Confirm>
          )}
          {error !== null && (
            <li>
              <Problem error={error} />
            </li>
          )}
        </ul>
      )}
    </Answered>
  );
}

type ChangesProps = Pick<VersionsProps, 'uuid' | 'senses'> & { version: number };

/** What a version changed, in words. */
function Changes({ uuid, version, senses }: ChangesProps) {
  const { data, error } = useQuery(`rule-version/${uuid}/${version}`, async (signal) => {
    const [before, after] = await Promise.all(
      [version - 1, version].map((each) =>
        each === 0 ? Promise.resolve(null) : getVersion(uuid, each, signal),
      ),
    );
    return { before, after };
  });
  if (error !== undefined) return <Problem error={error} />;
  if (!data) return null;
  const { before, after } = data;
  if (!before || !after)
    return (
      <p class="fine rule-changes">{text(version === 1 ? 'versions.first' : 'versions.gone')}</p>
    );
  return <ChangeList changes={sayChanges(before, after, senses)} />;
}

/** Changes in words, one a line. */
export function ChangeList({ changes }: { changes: readonly string[] }) {
  return (
    <ul class="fine rule-changes">
      {changes.map((change) => (
        <li key={change}>{change}</li>
      ))}
    </ul>
  );
}
