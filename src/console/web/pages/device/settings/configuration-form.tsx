import { useState } from 'preact/hooks';
import { reload } from '../../../api/cache.ts';
import { saveConfiguration } from '../../../api/device.ts';
import { ApiError } from '../../../api/request.ts';
import type { Configuration } from '../../../api/types.ts';
import { queryOf } from '../../../app/router.ts';
import { Problem } from '../../../parts/problem.tsx';
import { sensesOf } from '../../../parts/senses.ts';
import { t } from '../../../text/t.ts';
import { checkDraft, type FieldProblem } from './check-draft.ts';
import { configurationOf, draftOf, newSense, type Draft, type DraftSense } from './draft.ts';
import { NextValue } from './next-value.tsx';
import { SenseFields } from './sense-fields.tsx';

type FormProps = { uuid: string; configuration: Configuration };

/** The name of a device, and its senses. */
export function ConfigurationForm({ uuid, configuration }: FormProps) {
  const wanted = queryOf('sense');
  const [draft, setDraft] = useState(() => withSense(draftOf(configuration), wanted));
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setIsBusy] = useState(false);
  const [saved, setSaved] = useState(0);
  const [wrong, setWrong] = useState<readonly FieldProblem[]>([]);
  const problemAt = (path: string) => wrong.find((each) => each.path === path)?.message ?? '';
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const found = checkDraft(draft);
    setWrong(found);
    setError(null);
    if (found.length > 0) return;
    setIsBusy(true);
    try {
      await saveConfiguration(uuid, configurationOf(draft));
      setSaved(saved + 1);
      reload(`configuration/${uuid}`);
    } catch (thrown) {
      setError(thrown);
      if (thrown instanceof ApiError) setWrong(thrown.problems);
    }
    setIsBusy(false);
  };
  const change = (at: number, senses: DraftSense[]) =>
    setDraft({
      ...draft,
      modules: draft.modules.map((module, m) => (m === at ? { ...module, senses } : module)),
    });
  return (
    <form class="form" aria-labelledby="configuration" onSubmit={(event) => void save(event)}>
      <h3 id="configuration">{t('settings.title')}</h3>
      {error !== null && <Problem error={error} />}
      {error === null && wrong.length > 0 && (
        <p class="form-error" role="alert">
          {t('settings.wrong')}
        </p>
      )}
      <label class="field narrow">
        <span>{t('add.name')}</span>
        <input
          name="name"
          value={draft.device.name ?? ''}
          onInput={({ currentTarget }) =>
            setDraft({ ...draft, device: { ...draft.device, name: currentTarget.value } })
          }
        />
        <WrongField text={problemAt('/device/name')} />
      </label>
      {draft.modules.map(({ own, senses }, m) => (
        <section key={own.moduleId} aria-label={own.moduleName ?? own.moduleId} class="senses">
          {draft.modules.length > 1 && <h4>{own.moduleName ?? own.moduleId}</h4>}
          {senses.map((sense, s) => (
            <SenseFields
              key={s}
              sense={sense}
              path={`/module/${m}/senses/${s}`}
              problemAt={problemAt}
              isWanted={sense.sId === wanted}
              onChange={(field, value) => change(m, senses.with(s, { ...sense, [field]: value }))}
              onRemove={() => change(m, senses.toSpliced(s, 1))}
            />
          ))}
          <button
            type="button"
            class="button"
            onClick={() => change(m, [...senses, newSense(draft)])}
          >
            {t('settings.addSense')}
          </button>
        </section>
      ))}
      <p class="fine">{t('settings.handOver')}</p>
      <button type="submit" class="button button-main" disabled={isBusy}>
        {t('settings.save')}
      </button>
      {saved > 0 && <NextValue key={saved} uuid={uuid} senses={sensesOf(configuration)} />}
    </form>
  );
}

function WrongField({ text }: { text: string }) {
  return text === '' ? null : <span class="field-problem">{text}</span>;
}

/** With the sense that the page was opened for, where it is not there yet; a device without a module gets one. */
function withSense(draft: Draft, sId: string): Draft {
  const modules =
    draft.modules.length > 0
      ? draft.modules
      : [{ own: { moduleId: 'device', senses: [] }, senses: [] }];
  const isKnown = modules.some(({ senses }) => senses.some((sense) => sense.sId === sId));
  if (sId === '' || isKnown) return { ...draft, modules };
  return {
    ...draft,
    modules: modules.map((module, m) =>
      m === 0 ? { ...module, senses: [...module.senses, newSense(draft, sId)] } : module,
    ),
  };
}
